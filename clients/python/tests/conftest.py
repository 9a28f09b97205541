"""A real server on a store of its own, for each test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for name in [*environment]:
        if name.startswith("TL_"):
            del environment[name]
    server = subprocess.Popen(
        [
            os.environ["TL"],
            f"--store=sqlite:{tmp_path / 'sessions.db'}",
            "serve",
            "--listen=127.0.0.1:0",
            "--log=error",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.terminate()
    assert server.wait(timeout=30) == 0
