from __future__ import annotations

import pytest

from throughline import Client, NotFound, StaleWriter, ThroughlineError


def test_what_is_appended_is_read_again(url: str) -> None:
    with Client(url) as client:
        session = client.open("bot:1", name="first")
        client.append(session.id, [{"role": "user", "content": "Hello"}], head=session.head)
        entries, head = client.entries(session.id)
        assert [entry["content"] for entry in entries] == ["Hello"]
        assert head == 1
        assert client.open("bot:1").id == session.id
        assert [known.key for known in client.sessions()] == ["bot:1"]


def test_more_entries_than_a_page_holds_are_all_read(url: str) -> None:
    with Client(url) as client:
        session = client.open("long")
        for _ in range(3):
            client.append(session.id, [{"role": "user", "content": "x"}] * 400)
        entries, head = client.entries(session.id)
        assert [entry["seq"] for entry in entries] == [*range(1, 1201)]
        assert head == 1200


def test_a_stale_head_is_refused_and_nothing_is_written(url: str) -> None:
    with Client(url) as one, Client(url) as other:
        session = one.open("shared")
        other.append(session.id, [{"role": "user", "content": "first"}], head=0)
        for change in (
            lambda: one.append(session.id, [{"role": "user", "content": "late"}], head=0),
            lambda: one.rewind(session.id, 0, head=0),
            lambda: one.clear(session.id, head=0),
        ):
            with pytest.raises(StaleWriter) as refused:
                change()
            assert refused.value.head == 1
        assert one.entries(session.id)[1] == 1
        assert len([*one.sessions()]) == 1


def test_an_append_with_a_key_can_be_repeated(url: str) -> None:
    with Client(url) as client:
        session = client.open("retried")
        appends = [
            client.append(
                session.id,
                [{"role": "user", "content": "once"}],
                head=0,
                idempotency_key="question 1",
            )
            for _ in range(2)
        ]
        assert appends[0] == appends[1]
        assert client.entries(session.id)[1] == 1


def test_what_is_not_there_is_said_so(url: str) -> None:
    with Client(url) as client:
        with pytest.raises(NotFound) as missing:
            client.session("2026-01-01-00-00-00-000-aaaaaa")
        assert missing.value.code == "session_not_found"
        with pytest.raises(ThroughlineError) as bad:
            client.open("throughline:mine")
        assert bad.value.code == "reserved_key"
