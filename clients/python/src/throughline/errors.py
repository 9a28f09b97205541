"""What can go wrong, by the codes the server gives."""

from __future__ import annotations

import httpx


class ThroughlineError(Exception):
    """The server refused; `code` is for programs and never changes."""

    def __init__(self, status: int, code: str, detail: str, head: int | None = None) -> None:
        super().__init__(f"{detail} ({code})")
        self.status = status
        self.code = code
        self.detail = detail
        self.head = head


class NotFound(ThroughlineError):
    """There is no such thing, or it is somebody else's."""


class StaleWriter(ThroughlineError):
    """Somebody else wrote first; `head` is the session's last entry now.

    Nothing was written. Read what came since, then try again if it still makes sense.
    """


def check(response: httpx.Response) -> httpx.Response:
    """The response, if it is a good one."""
    if response.is_success:
        return response
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    code = str(problem.get("code", "unknown"))
    detail = str(problem.get("detail") or response.text or response.reason_phrase)
    head = problem.get("head")
    kind: type[ThroughlineError] = ThroughlineError
    if code == "head_moved":
        kind = StaleWriter
    elif response.status_code == 404:
        kind = NotFound
    raise kind(response.status_code, code, detail, head if isinstance(head, int) else None)
