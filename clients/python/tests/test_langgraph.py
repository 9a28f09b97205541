from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from throughline import Client, StaleWriter
from throughline.langgraph import ThroughlineSaver


class State(TypedDict):
    said: Annotated[list[str], operator.add]
    big: str


def thread(id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": id}}


def graph(saver: ThroughlineSaver) -> Any:
    builder = StateGraph(State)
    builder.add_node("one", lambda state: {"said": [f"one saw {len(state['said'])}"]})
    builder.add_node("two", lambda state: {"said": [f"two saw {len(state['said'])}"]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", END)
    return builder.compile(checkpointer=saver)


def test_a_thread_goes_on_in_another_program(url: str) -> None:
    with Client(url) as client:
        first = graph(ThroughlineSaver(client)).invoke({"said": ["a"], "big": "x"}, thread("t"))
        assert first["said"] == ["a", "one saw 1", "two saw 2"]
        second = graph(ThroughlineSaver(client)).invoke({"said": ["b"]}, thread("t"))
        assert second["said"][3:] == ["b", "one saw 4", "two saw 5"]
        assert second["big"] == "x"
        other = graph(ThroughlineSaver(client)).invoke({"said": []}, thread("u"))
        assert other["said"] == ["one saw 0", "two saw 1"]


def test_history_is_listed_and_any_checkpoint_can_be_taken_up(url: str) -> None:
    with Client(url) as client:
        saver = ThroughlineSaver(client)
        run = graph(saver)
        run.invoke({"said": ["a"]}, thread("t"))
        history = [*run.get_state_history(thread("t"))]
        assert [state.next for state in history] == [(), ("two",), ("one",), ("__start__",)]
        assert len([*saver.list(thread("t"), limit=2)]) == 2
        assert len([*saver.list(thread("t"), before=history[1].config)]) == 2
        assert len([*saver.list(thread("t"), filter={"source": "input"})]) == 1
        assert len([*saver.list(None)]) == 4
        again = run.invoke(None, history[1].config)
        assert again["said"] == ["a", "one saw 1", "two saw 2"]


def test_an_interrupted_run_is_resumed_elsewhere(url: str) -> None:
    def build(saver: ThroughlineSaver) -> Any:
        builder = StateGraph(State)
        builder.add_node("ask", lambda state: {"said": [interrupt("sure?")]})
        builder.add_edge(START, "ask")
        return builder.compile(checkpointer=saver)

    with Client(url) as client:
        build(ThroughlineSaver(client)).invoke({"said": []}, thread("t"))
        run = build(ThroughlineSaver(client))
        assert run.get_state(thread("t")).tasks[0].interrupts[0].value == "sure?"
        assert run.invoke(Command(resume="yes"), thread("t"))["said"] == ["yes"]


def test_it_works_without_waiting_too(url: str) -> None:
    async def go() -> None:
        with Client(url) as client:
            saver = ThroughlineSaver(client)
            run = graph(saver)
            await run.ainvoke({"said": ["a"]}, thread("t"))
            assert (await run.aget_state(thread("t"))).values["said"][0] == "a"
            assert len([one async for one in saver.alist(thread("t"))]) == 4
            await saver.adelete_thread("t")
            assert await saver.aget_tuple(thread("t")) is None

    asyncio.run(go())


def test_a_deleted_thread_is_gone_and_can_begin_again(url: str) -> None:
    with Client(url) as client:
        saver = ThroughlineSaver(client)
        graph(saver).invoke({"said": ["a"]}, thread("t"))
        saver.delete_thread("t")
        assert saver.get_tuple(thread("t")) is None
        assert graph(saver).invoke({"said": ["b"]}, thread("t"))["said"][0] == "b"


def test_a_stale_writer_is_refused(url: str) -> None:
    with Client(url) as client:
        one, other = ThroughlineSaver(client), ThroughlineSaver(client)
        graph(one).invoke({"said": ["a"]}, thread("t"))
        mine = one.get_tuple(thread("t"))
        assert mine is not None
        graph(other).invoke({"said": ["b"]}, thread("t"))
        with pytest.raises(StaleWriter):
            one.put(mine.config, mine.checkpoint, mine.metadata, {})
        with pytest.raises(StaleWriter):
            one.put_writes(mine.config, [("said", ["late"])], "task")
        latest = one.get_tuple(thread("t"))
        assert latest is not None
        assert latest.checkpoint["channel_values"]["said"][3] == "b"


def test_a_value_is_stored_once_however_many_checkpoints_there_are(url: str) -> None:
    with Client(url) as client:
        saver = ThroughlineSaver(client)
        graph(saver).invoke({"said": [], "big": "B" * 100_000}, thread("t"))
        for _ in range(5):
            graph(saver).invoke({"said": []}, thread("t"))
        [session] = client.sessions()
        stored = sum(len(str(entry)) for entry in client.entries(session.id)[0])
        # The input is stored once as what was put in and once as the channel's value.
        assert stored < 5 * 100_000
