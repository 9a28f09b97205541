"""Tests the sessions and runner of the openai-agents package against a running server."""

import asyncio
import os

from agents import (
    Agent,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

set_tracing_disabled(True)
client = AsyncOpenAI(
    base_url=os.environ["SERVER_URL"] + "/v1",
    api_key=os.environ.get("SERVER_KEY", "not-needed"),
)


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def agent(**settings):
    return Agent(
        name="Weather",
        instructions="You tell the weather.",
        tools=[get_weather],
        model=OpenAIResponsesModel(model="any", openai_client=client),
        model_settings=ModelSettings(**settings),
    )


def text(item):
    return item["content"][0]["text"]


async def sessions():
    session = OpenAIConversationsSession(openai_client=client)
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items(
        [{"role": "user", "content": f"number {n}"} for n in range(45)]
    )
    items = await session.get_items()
    assert [text(item) for item in items] == [f"number {n}" for n in range(45)]
    assert [text(item) for item in await session.get_items(limit=3)] == [
        "number 42",
        "number 43",
        "number 44",
    ]
    for n in (44, 43, 42):
        assert text(await session.pop_item()) == f"number {n}"
    assert len(await session.get_items()) == 42
    # Items that were read can be added again.
    copy = OpenAIConversationsSession(openai_client=client)
    await copy.add_items(await session.get_items())
    assert [text(i) for i in await copy.get_items()] == [text(i) for i in await session.get_items()]

    known = session.session_id
    again = OpenAIConversationsSession(conversation_id=known, openai_client=client)
    assert len(await again.get_items()) == 42
    await session.clear_session()
    assert await session.get_items() == []
    assert session.session_id != known


async def runner_with_a_session():
    session = OpenAIConversationsSession(openai_client=client)
    first = await Runner.run(agent(), "I am Ada.", session=session)
    assert first.final_output == "Heard 1 messages, the last one: I am Ada."
    second = await Runner.run(agent(), "Who am I?", session=session)
    assert second.final_output == "Heard 3 messages, the last one: Who am I?"
    third = await Runner.run(agent(), "And the weather?", session=session)
    assert third.final_output == "The tool says: sunny in Paris"
    kinds = [item["type"] for item in await session.get_items()]
    assert kinds == ["message"] * 5 + ["function_call", "function_call_output", "message"], kinds
    fourth = Runner.run_streamed(agent(), "Goodbye.", session=session)
    async for _ in fourth.stream_events():
        pass
    assert fourth.final_output.endswith("the last one: Goodbye."), fourth.final_output
    # The last two, removed, are not part of later requests.
    for _ in range(2):
        await session.pop_item()
    fifth = await Runner.run(agent(), "Well?", session=session)
    assert fifth.final_output.endswith("the last one: Well?")
    assert "Goodbye." not in str(await session.get_items())


async def runner_with_a_conversation():
    talk = await client.conversations.create()
    for n, question in enumerate(["I am Ada.", "Who am I?"]):
        result = await Runner.run(agent(), question, conversation_id=talk.id)
        assert result.final_output == f"Heard {2 * n + 1} messages, the last one: {question}"
    result = await Runner.run(agent(), "And the weather?", conversation_id=talk.id)
    assert result.final_output == "The tool says: sunny in Paris"
    streamed = Runner.run_streamed(agent(), "The weather again?", conversation_id=talk.id)
    deltas = ""
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            deltas += event.data.delta
    assert streamed.final_output == deltas == "The tool says: sunny in Paris"
    items = [item async for item in client.conversations.items.list(talk.id, order="asc")]
    called = ["message", "function_call", "function_call_output", "message"]
    assert [item.type for item in items] == ["message"] * 4 + called * 2


async def runner_with_previous_responses():
    first = await Runner.run(agent(store=True), "I am Ada.")
    second = await Runner.run(
        agent(store=True), "Who am I?", previous_response_id=first.last_response_id
    )
    assert second.final_output == "Heard 3 messages, the last one: Who am I?"


async def main():
    await sessions()
    await runner_with_a_session()
    await runner_with_a_conversation()
    await runner_with_previous_responses()


asyncio.run(main())
print("fine")
