"""The HTTP API, blocking and not.

Both clients make the same requests: what differs is only how they wait.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import quote

import httpx

from .errors import check

Entry = dict[str, Any]
"""One thing that happened, as the server tells it: `seq`, `kind`, and what the kind has."""

PAGE = 500


class NewMessage(TypedDict):
    """A message to append: `content` is a text or blocks."""

    role: str
    content: str | list[dict[str, Any]]


@dataclass(frozen=True)
class SessionInfo:
    """A session as a listing shows it."""

    id: str
    key: str | None
    name: str | None
    head: int

    @classmethod
    def of(cls, body: dict[str, Any]) -> SessionInfo:
        return cls(body["id"], body.get("key"), body.get("name"), body["head"])


@dataclass(frozen=True)
class _Call:
    """One request, not yet sent."""

    method: str
    path: str
    params: dict[str, Any] | None = None
    json: Any = None
    headers: dict[str, str] | None = None


def _at(session: str, *rest: str) -> str:
    return "/".join(["/api/sessions", quote(session, safe=""), *rest])


def _if_match(head: int | None) -> dict[str, str]:
    return {} if head is None else {"If-Match": f'"{head}"'}


def _open(key: str, name: str | None) -> _Call:
    body: dict[str, Any] = {"key": key}
    if name is not None:
        body["name"] = name
    return _Call("POST", "/api/sessions", json=body)



def _entries(session: str, after: int) -> _Call:
    return _Call("GET", _at(session, "entries"), params={"after": after, "limit": PAGE})


def _append(
    session: str, messages: Sequence[NewMessage], head: int | None, key: str | None
) -> _Call:
    headers = _if_match(head)
    if key is not None:
        headers["Idempotency-Key"] = key
    body = {"entries": list(messages)}
    return _Call("POST", _at(session, "entries"), json=body, headers=headers)


def _rewind(session: str, to: int, head: int | None) -> _Call:
    return _Call("POST", _at(session, "rewind"), json={"to": to}, headers=_if_match(head))


def _clear(session: str, head: int | None) -> _Call:
    return _Call("POST", _at(session, "clear"), headers=_if_match(head))


def _list(after: str | None) -> _Call:
    params: dict[str, Any] = {"limit": PAGE}
    if after is not None:
        params["after"] = after
    return _Call("GET", "/api/sessions", params=params)


def _headers(token: str | None, on_behalf_of: str | None) -> dict[str, str]:
    headers = {}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if on_behalf_of is not None:
        headers["On-Behalf-Of"] = on_behalf_of
    return headers


class Client:
    """A client that waits."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:7878",
        *,
        token: str | None = None,
        on_behalf_of: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._http = httpx.Client(
            base_url=url, headers=_headers(token, on_behalf_of), timeout=timeout
        )

    def close(self) -> None:
        """Lets go of the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, call: _Call) -> Any:
        response = self._http.request(
            call.method, call.path, params=call.params, json=call.json, headers=call.headers
        )
        check(response)
        return response.json() if response.content else None

    def open(self, key: str, name: str | None = None) -> SessionInfo:
        """The session with this key, which is made if there is none."""
        return SessionInfo.of(self._send(_open(key, name)))

    def session(self, id: str) -> SessionInfo:
        """A session by its id."""
        return SessionInfo.of(self._send(_Call("GET", _at(id))))

    def sessions(self) -> Iterator[SessionInfo]:
        """All sessions, latest activity first."""
        after = None
        while True:
            page = self._send(_list(after))
            yield from map(SessionInfo.of, page["sessions"])
            after = page["next"]
            if after is None:
                return

    def entries(self, session: str, after: int = 0) -> tuple[list[Entry], int]:
        """All entries after one, and the number of the session's last."""
        found: list[Entry] = []
        while True:
            page = self._send(_entries(session, after))
            found.extend(page["entries"])
            if page["newer"] is None or not page["entries"]:
                return found, page["head"]
            after = page["entries"][-1]["seq"]

    def append(
        self,
        session: str,
        messages: Sequence[NewMessage],
        *,
        head: int | None = None,
        idempotency_key: str | None = None,
    ) -> list[Entry]:
        """Appends messages after `head`, all or none; durable when it returns.

        With an `idempotency_key` it can be repeated after any error: it is stored once.
        """
        call = _append(session, messages, head, idempotency_key)
        entries: list[Entry] = self._send(call)["entries"]
        return entries

    def rewind(self, session: str, to: int, *, head: int | None = None) -> int:
        """Takes back what was said after an entry; tells where it really went back to."""
        return int(self._send(_rewind(session, to, head))["to"])

    def clear(self, session: str, *, head: int | None = None) -> None:
        """Starts anew; what came before stays readable."""
        self._send(_clear(session, head))

    def delete(self, session: str) -> None:
        """Puts a session into the trash."""
        self._send(_Call("DELETE", _at(session)))


class AsyncClient:
    """A client for programs that do other things meanwhile."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:7878",
        *,
        token: str | None = None,
        on_behalf_of: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers=_headers(token, on_behalf_of), timeout=timeout
        )

    async def close(self) -> None:
        """Lets go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(self, call: _Call) -> Any:
        response = await self._http.request(
            call.method, call.path, params=call.params, json=call.json, headers=call.headers
        )
        check(response)
        return response.json() if response.content else None

    async def open(self, key: str, name: str | None = None) -> SessionInfo:
        """The session with this key, which is made if there is none."""
        return SessionInfo.of(await self._send(_open(key, name)))

    async def session(self, id: str) -> SessionInfo:
        """A session by its id."""
        return SessionInfo.of(await self._send(_Call("GET", _at(id))))

    async def sessions(self) -> AsyncIterator[SessionInfo]:
        """All sessions, latest activity first."""
        after = None
        while True:
            page = await self._send(_list(after))
            for body in page["sessions"]:
                yield SessionInfo.of(body)
            after = page["next"]
            if after is None:
                return

    async def entries(self, session: str, after: int = 0) -> tuple[list[Entry], int]:
        """All entries after one, and the number of the session's last."""
        found: list[Entry] = []
        while True:
            page = await self._send(_entries(session, after))
            found.extend(page["entries"])
            if page["newer"] is None or not page["entries"]:
                return found, page["head"]
            after = page["entries"][-1]["seq"]

    async def append(
        self,
        session: str,
        messages: Sequence[NewMessage],
        *,
        head: int | None = None,
        idempotency_key: str | None = None,
    ) -> list[Entry]:
        """Appends messages after `head`, all or none; durable when it returns.

        With an `idempotency_key` it can be repeated after any error: it is stored once.
        """
        call = _append(session, messages, head, idempotency_key)
        entries: list[Entry] = (await self._send(call))["entries"]
        return entries

    async def rewind(self, session: str, to: int, *, head: int | None = None) -> int:
        """Takes back what was said after an entry; tells where it really went back to."""
        return int((await self._send(_rewind(session, to, head)))["to"])

    async def clear(self, session: str, *, head: int | None = None) -> None:
        """Starts anew; what came before stays readable."""
        await self._send(_clear(session, head))

    async def delete(self, session: str) -> None:
        """Puts a session into the trash."""
        await self._send(_Call("DELETE", _at(session)))
