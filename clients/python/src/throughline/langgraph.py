"""A LangGraph checkpointer that keeps its checkpoints in Throughline.

A thread is a session. Each checkpoint and each batch of writes is one entry, appended after
the last entry the saver has read; a channel's value is stored only when it changed.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .client import Client, Entry

KEY = "langgraph:"
CHECKPOINT = "langgraph_checkpoint"
WRITES = "langgraph_writes"

Typed = tuple[str, bytes]


@dataclass
class _Stored:
    """A checkpoint without the values of its channels."""

    checkpoint: Typed
    metadata: Typed
    parent: str | None


@dataclass
class _Thread:
    """What is known of a thread, up to `head`."""

    session: str | None = None
    head: int = 0
    checkpoints: dict[str, dict[str, _Stored]] = field(default_factory=dict)
    values: dict[tuple[str, str, str], Typed] = field(default_factory=dict)
    writes: dict[tuple[str, str], dict[tuple[str, int], tuple[str, Typed, str]]] = field(
        default_factory=dict
    )
    lock: threading.RLock = field(default_factory=threading.RLock)


class ThroughlineSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of graphs in Throughline.

    Reading a thread's latest checkpoint, with which every run begins, takes in what others
    wrote. If somebody else writes to the thread during a run, the next `put` raises
    `StaleWriter` and writes nothing.
    """

    def __init__(self, client: Client, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.client = client
        self._threads: dict[str, _Thread] = {}
        self._lock = threading.Lock()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that is asked for, or the thread's latest."""
        thread_id, ns = _place(config)
        thread = self._thread(thread_id)
        with thread.lock:
            self._read(thread_id, thread)
            known = thread.checkpoints.get(ns, {})
            id = get_checkpoint_id(config) or max(known, default=None)
            if id is None or id not in known:
                return None
            return self._tuple(thread_id, thread, ns, id)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the latest of each thread first."""
        threads = self._all() if config is None else [config["configurable"]["thread_id"]]
        asked = config["configurable"].get("checkpoint_ns") if config else None
        wanted = get_checkpoint_id(config) if config else None
        until = get_checkpoint_id(before) if before else None
        for thread_id in threads:
            thread = self._thread(str(thread_id))
            with thread.lock:
                self._read(str(thread_id), thread)
                found = [
                    self._tuple(str(thread_id), thread, ns, id)
                    for ns, known in thread.checkpoints.items()
                    if asked is None or ns == asked
                    for id in sorted(known, reverse=True)
                    if (wanted is None or id == wanted) and (until is None or id < until)
                ]
            for one in found:
                metadata: dict[str, Any] = dict(one.metadata)
                if filter and any(metadata.get(k) != v for k, v in filter.items()):
                    continue
                if limit is not None:
                    if limit <= 0:
                        return
                    limit -= 1
                yield one

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint; it is durable when this returns."""
        thread_id, ns = _place(config)
        bare: dict[str, Any] = {**checkpoint}
        values: dict[str, Any] = bare.pop("channel_values", {})
        changed = {
            name: [str(version), *self._dump(values[name])]
            if name in values
            else [str(version), "empty", ""]
            for name, version in new_versions.items()
        }
        block = {
            "type": CHECKPOINT,
            "ns": ns,
            "id": checkpoint["id"],
            "parent": config["configurable"].get("checkpoint_id"),
            "checkpoint": self._dump(bare),
            "metadata": self._dump(get_checkpoint_metadata(config, metadata)),
            "values": changed,
        }
        self._append(thread_id, block)
        return {
            "configurable": {
                "thread_id": thread_id,
                "checkpoint_ns": ns,
                "checkpoint_id": checkpoint["id"],
            }
        }

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote after a checkpoint."""
        thread_id, ns = _place(config)
        block = {
            "type": WRITES,
            "ns": ns,
            "id": config["configurable"]["checkpoint_id"],
            "task": task_id,
            "path": task_path,
            "writes": [
                [WRITES_IDX_MAP.get(channel, index), channel, *self._dump(value)]
                for index, (channel, value) in enumerate(writes)
            ],
        }
        self._append(thread_id, block)

    def delete_thread(self, thread_id: str) -> None:
        """Puts a thread's session into the trash."""
        thread = self._thread(thread_id)
        with thread.lock:
            session = self.client.open(KEY + thread_id)
            self.client.delete(session.id)
            with self._lock:
                self._threads.pop(thread_id, None)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`, without keeping the loop waiting."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, without keeping the loop waiting."""

        def all() -> Sequence[CheckpointTuple]:
            return [*self.list(config, filter=filter, before=before, limit=limit)]

        for one in await asyncio.to_thread(all):
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put`, without keeping the loop waiting."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """`put_writes`, without keeping the loop waiting."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread`, without keeping the loop waiting."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions are numbers that sort as texts."""
        last = 0 if current is None else int(str(current).split(".")[0])
        return f"{last + 1:032}"

    def _all(self) -> Sequence[str]:
        keys = (session.key for session in self.client.sessions())
        return [key.removeprefix(KEY) for key in keys if key and key.startswith(KEY)]

    def _thread(self, thread_id: str) -> _Thread:
        with self._lock:
            return self._threads.setdefault(thread_id, _Thread())

    def _read(self, thread_id: str, thread: _Thread) -> None:
        """Takes in what was written since."""
        if thread.session is None:
            thread.session = self.client.open(KEY + thread_id).id
        new, head = self.client.entries(thread.session, thread.head)
        self._take(thread, new)
        thread.head = max(thread.head, head)

    def _append(self, thread_id: str, block: dict[str, Any]) -> None:
        thread = self._thread(thread_id)
        with thread.lock:
            if thread.session is None:
                self._read(thread_id, thread)
            assert thread.session is not None
            added = self.client.append(
                thread.session, [{"role": "system", "content": [block]}], head=thread.head
            )
            self._take(thread, added)

    def _take(self, thread: _Thread, entries: Sequence[Entry]) -> None:
        for entry in entries:
            thread.head = max(thread.head, entry["seq"])
            if entry["kind"] != "message" or isinstance(entry["content"], str):
                continue
            for block in entry["content"]:
                match block.get("type"):
                    case "langgraph_checkpoint":
                        _take_checkpoint(thread, block)
                    case "langgraph_writes":
                        _take_writes(thread, block)

    def _tuple(self, thread_id: str, thread: _Thread, ns: str, id: str) -> CheckpointTuple:
        stored = thread.checkpoints[ns][id]
        checkpoint: Checkpoint = self.serde.loads_typed(stored.checkpoint)
        values: dict[str, Any] = {}
        for name, version in checkpoint["channel_versions"].items():
            typed = thread.values.get((ns, name, str(version)))
            if typed is not None and typed[0] != "empty":
                values[name] = self.serde.loads_typed(typed)

        def place(checkpoint_id: str) -> RunnableConfig:
            return {
                "configurable": {
                    "thread_id": thread_id,
                    "checkpoint_ns": ns,
                    "checkpoint_id": checkpoint_id,
                }
            }

        checkpoint["channel_values"] = values
        writes = thread.writes.get((ns, id), {})
        return CheckpointTuple(
            config=place(id),
            checkpoint=checkpoint,
            metadata=self.serde.loads_typed(stored.metadata),
            parent_config=place(stored.parent) if stored.parent else None,
            pending_writes=[
                (task, channel, self.serde.loads_typed(typed))
                for (task, _), (channel, typed, _) in writes.items()
            ],
        )

    def _dump(self, value: Any) -> tuple[str, str]:
        kind, data = self.serde.dumps_typed(value)
        return kind, base64.b64encode(data).decode()


def _place(config: RunnableConfig) -> tuple[str, str]:
    place = config["configurable"]
    return str(place["thread_id"]), place.get("checkpoint_ns", "")


def _loaded(kind: str, data: str) -> Typed:
    return kind, base64.b64decode(data)


def _take_checkpoint(thread: _Thread, block: dict[str, Any]) -> None:
    ns = block["ns"]
    for name, (version, kind, data) in block["values"].items():
        thread.values[(ns, name, version)] = _loaded(kind, data)
    thread.checkpoints.setdefault(ns, {})[block["id"]] = _Stored(
        _loaded(*block["checkpoint"]), _loaded(*block["metadata"]), block["parent"]
    )


def _take_writes(thread: _Thread, block: dict[str, Any]) -> None:
    known = thread.writes.setdefault((block["ns"], block["id"]), {})
    for index, channel, kind, data in block["writes"]:
        place = (block["task"], index)
        # What a task wrote once stands; special writes are the latest.
        if index >= 0 and place in known:
            continue
        known[place] = (channel, _loaded(kind, data), block["path"])
