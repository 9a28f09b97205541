"""A session of the OpenAI Agents SDK, kept in Throughline.

An item becomes one message. What the message itself cannot hold is kept beside it, so that
an item comes back exactly as it went in.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

from .client import AsyncClient, Entry, NewMessage

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.memory import SessionSettings

KEY = "agents:"
ITEM = "agents_item"


class ThroughlineSession:
    """The history of one conversation, for `Runner.run(…, session=…)`.

    It remembers what it has read. If somebody else wrote since, adding, popping and
    clearing raise `StaleWriter`; `get_items`, with which every run begins, reads again.
    """

    def __init__(
        self,
        session_id: str,
        client: AsyncClient,
        *,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._client = client
        self._lock = asyncio.Lock()
        self._id: str | None = None
        self._head = 0
        self._said: list[Entry] = []

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The latest items, oldest first; all where there is no limit."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        async with self._lock:
            await self._read()
            said = self._said if limit is None else self._said[len(self._said) - limit :]
            if limit is not None and limit <= 0:
                said = []
            elif limit is not None and limit >= len(self._said):
                said = self._said
            return [_item(entry) for entry in said]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items, all or none."""
        if not items:
            return
        async with self._lock:
            id = await self._opened()
            messages = [_message(cast("dict[str, Any]", item)) for item in items]
            added = await self._client.append(id, messages, head=self._head)
            self._take(added)

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the latest item back; it stays readable in the session's log."""
        async with self._lock:
            id = await self._opened()
            if not self._said:
                return None
            *before, last = self._said
            to = last["seq"] - 1
            again: list[Entry] = []
            # A tool's result is not parted from its call: both are taken back, and what
            # came before the result is said again.
            calls = _ids(last, "tool_result", "call_id")
            for index, entry in enumerate(before):
                if calls & _ids(entry, "tool_call", "id"):
                    to = entry["seq"] - 1
                    again = before[index:]
                    break
            await self._client.rewind(id, to, head=self._head)
            await self._read()
            if again:
                messages: list[NewMessage] = [
                    {"role": entry["role"], "content": entry["content"]} for entry in again
                ]
                self._take(await self._client.append(id, messages, head=self._head))
            return _item(last)

    async def clear_session(self) -> None:
        """Starts anew; what came before stays readable in the session's log."""
        async with self._lock:
            id = await self._opened()
            await self._client.clear(id, head=self._head)
            await self._read()

    async def _opened(self) -> str:
        """The session's id; what is in it has been read once."""
        if self._id is None:
            await self._read()
        assert self._id is not None
        return self._id

    async def _read(self) -> None:
        """Reads what came since."""
        if self._id is None:
            self._id = (await self._client.open(KEY + self.session_id)).id
        new, head = await self._client.entries(self._id, self._head)
        self._take(new)
        self._head = max(self._head, head)

    def _take(self, entries: list[Entry]) -> None:
        for entry in entries:
            kind, seq = entry["kind"], entry["seq"]
            if kind == "message":
                self._said.append(entry)
            elif kind == "cleared":
                self._said.clear()
            elif kind == "rewound":
                self._said = [known for known in self._said if known["seq"] <= entry["to"]]
            self._head = max(self._head, seq)


def _ids(entry: Entry, kind: str, name: str) -> set[str]:
    content = entry["content"]
    if isinstance(content, str):
        return set()
    return {block[name] for block in content if block.get("type") == kind}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return {"arguments": text}


def _message(item: dict[str, Any]) -> NewMessage:
    """An item as a message that people can read and search."""
    role, content = item.get("role"), item.get("content")
    known = {"developer": "system"}.get(str(role), str(role))
    if set(item) == {"role", "content"} and isinstance(content, str) and known == role:
        return {"role": known, "content": content}
    whole = {"type": ITEM, "item": item}
    match item.get("type", "message"):
        case "message" if known in ("user", "assistant", "system"):
            text = _text(content)
            said = [{"type": "text", "text": text}] if text else []
            return {"role": known, "content": [*said, whole]}
        case "function_call" if item.get("call_id"):
            call = {
                "type": "tool_call",
                "id": item["call_id"],
                "name": str(item.get("name", "")),
                "input": _json(item.get("arguments")),
            }
            return {"role": "assistant", "content": [call, whole]}
        case "function_call_output" if item.get("call_id"):
            output = item.get("output")
            result = {
                "type": "tool_result",
                "call_id": item["call_id"],
                "content": output if isinstance(output, str) else _text(output),
            }
            return {"role": "tool", "content": [result, whole]}
    return {"role": "assistant", "content": [whole]}


def _item(entry: Entry) -> TResponseInputItem:
    """The item that a message was, or would have been."""
    content = entry["content"]
    if isinstance(content, list):
        for block in content:
            if block.get("type") == ITEM:
                return cast("TResponseInputItem", block["item"])
    role = "user" if entry["role"] == "tool" else entry["role"]
    return cast("TResponseInputItem", {"role": role, "content": _text(content)})
