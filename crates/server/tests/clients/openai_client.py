"""Tests the official Python client, sync and async, against a running server."""

import asyncio
import json
import os

import openai
from openai import AsyncOpenAI, OpenAI
from openai.types.conversations import Conversation, ConversationItem, Message
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

URL = os.environ["SERVER_URL"] + "/v1"
KEY = os.environ.get("SERVER_KEY", "not-needed")

ITEM = TypeAdapter(ConversationItem)
EVENT = TypeAdapter(ResponseStreamEvent)
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def strictly(adapter, answer):
    """Validates responses: clients accept anything, but responses must match the schema."""
    return adapter(json.loads(answer.to_json()) if hasattr(answer, "to_json") else answer)


def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def conversations(client: OpenAI):
    made = client.conversations.create(
        metadata={"topic": "demo"},
        items=[{"type": "message", "role": "user", "content": "Hello!"}],
    )
    strictly(Conversation.model_validate, made)
    assert made.id.startswith("conv_") and made.metadata == {"topic": "demo"}
    assert client.conversations.retrieve(made.id) == made
    noted = client.conversations.update(made.id, metadata={"topic": "other"})
    assert noted.metadata == {"topic": "other"}

    added = client.conversations.items.create(
        made.id,
        items=[
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": [{"type": "input_text", "text": "How are you?"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "fine"},
            {"type": "reasoning", "id": "rs_mine", "summary": []},
        ],
    )
    kinds = [item.type for item in added.data]
    assert kinds == ["message", "message", "function_call", "function_call_output", "reasoning"]
    assert added.first_id == added.data[0].id and added.last_id == "rs_mine"

    every = list(client.conversations.items.list(made.id, order="asc", limit=2))
    assert len(every) == 6, every
    assert isinstance(every[0], Message)
    assert every[0].content[0].text == "Hello!"
    for item in every:
        strictly(ITEM.validate_python, item)
        assert client.conversations.items.retrieve(item.id, conversation_id=made.id) == item
    latest = client.conversations.items.list(made.id, limit=1)
    assert latest.data == [every[-1]] and latest.has_more

    left = client.conversations.items.delete(every[-1].id, conversation_id=made.id)
    assert left.id == made.id
    raised(
        openai.NotFoundError,
        lambda: client.conversations.items.retrieve(every[-1].id, conversation_id=made.id),
    )
    assert len(list(client.conversations.items.list(made.id))) == 5

    error = raised(
        openai.BadRequestError,
        lambda: client.conversations.items.create(made.id, items=[{"role": "user", "content": "x"}] * 21),
    )
    assert error.param == "items" and error.type == "invalid_request_error", error.body

    gone = client.conversations.delete(made.id)
    assert gone.deleted and gone.object == "conversation.deleted" and gone.id == made.id
    error = raised(openai.NotFoundError, lambda: client.conversations.retrieve(made.id))
    assert error.code == "conversation_not_found"


def responses(client: OpenAI):
    alone = client.responses.create(model="any", input="Who is there?", store=False)
    strictly(Response.model_validate, alone)
    assert alone.output_text == "Heard 1 messages, the last one: Who is there?"
    assert alone.status == "completed" and alone.conversation is None
    assert alone.usage.total_tokens == 120
    raised(openai.NotFoundError, lambda: client.responses.retrieve(alone.id))

    talk = client.conversations.create()
    first = client.responses.create(model="any", input="One", conversation=talk.id)
    second = client.responses.create(
        model="any", input=[{"role": "user", "content": "Two"}], conversation={"id": talk.id}
    )
    strictly(Response.model_validate, second)
    assert first.output_text == "Heard 1 messages, the last one: One"
    assert second.output_text == "Heard 3 messages, the last one: Two"
    assert second.conversation.id == talk.id
    assert client.responses.retrieve(second.id).output == second.output
    every = list(client.conversations.items.list(talk.id, order="asc"))
    assert [item.role for item in every] == ["user", "assistant"] * 2
    assert every[3].id == second.output[0].id

    kept = client.responses.create(model="any", input="I am Ada.")
    assert client.responses.retrieve(kept.id).output == kept.output
    after = client.responses.create(model="any", input="And you?", previous_response_id=kept.id)
    assert after.output_text == "Heard 3 messages, the last one: And you?"
    assert after.previous_response_id == kept.id


def terms(client: OpenAI):
    shape = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    told = client.responses.create(
        model="any",
        input="Where?",
        temperature=0.5,
        top_p=0.25,
        max_output_tokens=50,
        text={"format": {"type": "json_schema", "name": "place", "schema": shape}},
    )
    strictly(Response.model_validate, told)
    assert (told.temperature, told.top_p, told.max_output_tokens) == (0.5, 0.25, 50)
    assert told.text.format.name == "place" and told.text.format.schema_ == shape
    error = raised(
        openai.BadRequestError,
        lambda: client.responses.create(model="any", input="Where?", temperature=3),
    )
    assert error.param == "temperature" and error.code == "invalid_value", error.body


def tools(client: OpenAI):
    talk = client.conversations.create()
    asked = client.responses.create(
        model="any", input="What is the weather?", conversation=talk.id, tools=[WEATHER]
    )
    strictly(Response.model_validate, asked)
    (call,) = asked.output
    assert call.type == "function_call" and json.loads(call.arguments) == {"city": "Paris"}
    answer = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    told = client.responses.create(
        model="any", input=[answer], conversation=talk.id, tools=[WEATHER]
    )
    assert told.output_text == "The tool says: sunny", told

    with client.responses.stream(model="any", input="weather?", tools=[WEATHER]) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    assert final.output[0].name == "get_weather"


def streaming(client: OpenAI):
    talk = client.conversations.create()
    said = ""
    events = client.responses.create(model="any", input="Stream!", conversation=talk.id, stream=True)
    kinds = []
    for event in events:
        strictly(EVENT.validate_python, event)
        kinds.append(event.type)
        if event.type == "response.output_text.delta":
            said += event.delta
    assert said == "Heard 1 messages, the last one: Stream!"
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert event.response.output_text == said

    with client.responses.stream(model="any", input="Again!", conversation=talk.id) as stream:
        for event in stream:
            pass
        final = stream.get_final_response()
    assert final.output_text == "Heard 3 messages, the last one: Again!"
    every = list(client.conversations.items.list(talk.id, order="asc"))
    assert every[-1].id == final.output[0].id


def conflicts(client: OpenAI):
    talk = client.conversations.create()
    with client.responses.create(
        model="any", input="take your time", conversation=talk.id, stream=True
    ) as events:
        next(events)
        error = raised(
            openai.BadRequestError,
            lambda: client.responses.create(model="any", input="Two", conversation=talk.id),
        )
        assert error.code == "conversation_locked" and error.param == "conversation"
        for _ in events:
            pass
    client.responses.create(model="any", input="Two", conversation=talk.id)


async def in_async():
    async with AsyncOpenAI(base_url=URL, api_key=KEY) as client:
        talk = await client.conversations.create(items=[{"role": "user", "content": "Hello"}])
        answers = await asyncio.gather(
            *(client.responses.create(model="any", input=f"Q{n}") for n in range(8))
        )
        assert [a.output_text for a in answers] == [
            f"Heard 1 messages, the last one: Q{n}" for n in range(8)
        ]
        stream = await client.responses.create(
            model="any", input="Stream!", conversation=talk.id, stream=True
        )
        said = "".join([e.delta async for e in stream if e.type == "response.output_text.delta"])
        assert said.endswith("Stream!"), said
        every = [item async for item in client.conversations.items.list(talk.id, limit=1)]
        assert len(every) == 3
        await client.conversations.delete(talk.id)


with OpenAI(base_url=URL, api_key=KEY) as client:
    assert client.models.list().data[0].id == "openai/model-max"
    assert client.models.retrieve("openai/model-max").owned_by == "openai"
    conversations(client)
    responses(client)
    terms(client)
    tools(client)
    streaming(client)
    conflicts(client)
asyncio.run(in_async())
print("fine")
