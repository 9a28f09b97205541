from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.models.interface import Model
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from throughline import AsyncClient, StaleWriter
from throughline.agents import ThroughlineSession

set_tracing_disabled(True)

Items = list[Any]
CALL: dict[str, Any] = {
    "type": "function_call",
    "call_id": "c1",
    "name": "weather",
    "arguments": '{"city": "Bern"}',
    "id": "fc_1",
    "status": "completed",
}
RESULT: dict[str, Any] = {"type": "function_call_output", "call_id": "c1", "output": "Sunny."}
RICH: dict[str, Any] = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Look"}],
}
STRANGE: dict[str, Any] = {"type": "reasoning", "id": "r1", "summary": []}


def test_it_is_a_session_as_the_sdk_wants_it(url: str) -> None:
    assert isinstance(ThroughlineSession("a", AsyncClient(url)), Session)


def test_items_come_back_as_they_went_in(url: str) -> None:
    items: Items = [
        {"role": "user", "content": "Hello"},
        {"role": "developer", "content": "Be brief"},
        RICH,
        CALL,
        RESULT,
        STRANGE,
    ]

    async def go() -> None:
        async with AsyncClient(url) as client:
            await ThroughlineSession("a", client).add_items(items)
            again = ThroughlineSession("a", client)
            assert await again.get_items() == items
            assert await again.get_items(2) == items[-2:]
            assert await again.get_items(100) == items
            assert await ThroughlineSession("b", client).get_items() == []

    asyncio.run(go())


def test_items_are_popped_one_by_one_even_a_tools_result(url: str) -> None:
    async def go() -> None:
        async with AsyncClient(url) as client:
            session = ThroughlineSession("a", client)
            items: Items = [{"role": "user", "content": "Hello"}, CALL, RICH, RESULT]
            await session.add_items(items)
            for left in range(len(items) - 1, -1, -1):
                assert await session.pop_item() == items[left]
                assert await session.get_items() == items[:left]
                assert await ThroughlineSession("a", client).get_items() == items[:left]
            assert await session.pop_item() is None

    asyncio.run(go())


def test_a_cleared_session_is_empty_and_goes_on(url: str) -> None:
    async def go() -> None:
        async with AsyncClient(url) as client:
            session = ThroughlineSession("a", client)
            await session.add_items([{"role": "user", "content": "old"}])
            await session.clear_session()
            assert await session.get_items() == []
            await session.add_items([{"role": "user", "content": "new"}])
            assert await ThroughlineSession("a", client).get_items() == [
                {"role": "user", "content": "new"}
            ]

    asyncio.run(go())


def test_a_stale_writer_is_refused(url: str) -> None:
    async def go() -> None:
        async with AsyncClient(url) as client:
            one, other = (ThroughlineSession("a", client) for _ in range(2))
            hello: Items = [{"role": "user", "content": "Hello"}]
            await one.get_items()
            await other.add_items(hello)
            with pytest.raises(StaleWriter):
                await one.add_items([{"role": "user", "content": "late"}])
            with pytest.raises(StaleWriter):
                await one.clear_session()
            assert await other.get_items() == hello
            assert await one.get_items() == hello
            await one.add_items([{"role": "user", "content": "now"}])
            with pytest.raises(StaleWriter):
                await other.pop_item()

    asyncio.run(go())


@function_tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"Sunny in {city}."


class Scripted(Model):
    """A model that calls a tool, then says what it was told."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
        last = input[-1] if isinstance(input, list) else {"content": input}
        output: Any
        if last.get("type") == "function_call_output":
            text = ResponseOutputText(
                text=f"{len(input)} items; {last['output']}", type="output_text", annotations=[]
            )
            output = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            output = ResponseFunctionToolCall(
                call_id=f"c{len(input)}",
                name="weather",
                arguments='{"city": "Bern"}',
                type="function_call",
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def test_an_agent_runs_with_it_and_knows_what_was_said(url: str) -> None:
    async def go() -> None:
        agent = Agent(name="a", model=Scripted(), tools=[weather])
        async with AsyncClient(url) as client:
            first = await Runner.run(agent, "Weather?", session=ThroughlineSession("a", client))
            assert first.final_output == "3 items; Sunny in Bern."
            second = await Runner.run(agent, "And now?", session=ThroughlineSession("a", client))
            assert second.final_output == "7 items; Sunny in Bern."
            assert len(await ThroughlineSession("a", client).get_items()) == 8

    asyncio.run(go())
