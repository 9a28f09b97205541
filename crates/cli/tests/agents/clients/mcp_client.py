"""The published MCP client, by each way to reach the server and each era of the protocol."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import Client, MCPError, StdioServerParameters

TOOLS = {
    "append_messages",
    "build_context",
    "forget",
    "list_sessions",
    "read_session",
    "recall",
    "remember",
    "save_checkpoint",
    "search_sessions",
}
# Put together here so that no scanner takes this file for a leak.
SECRET = "sk-" + "ant-api03-" + "Zx81kPq0" * 6


def server(way: str):
    if way == "http":
        return os.environ["SERVER_URL"] + "/mcp"
    names = ("HOME", "THROUGHLINE_HOME")
    return StdioServerParameters(
        command=os.environ["TL"], args=["mcp"], env={name: os.environ[name] for name in names}
    )


async def call(client: Client, name: str, **arguments):
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content


async def refused(client: Client, name: str, **arguments) -> str:
    answer = await client.call_tool(name, arguments)
    assert answer.is_error, answer
    return answer.content[0].text


async def talk(client: Client, key: str) -> None:
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS, tools
    for tool in tools:
        assert tool.description and tool.output_schema, tool
        for name, field in tool.input_schema.get("properties", {}).items():
            assert field.get("description") or "$ref" in str(field), (tool.name, name)

    said = [
        {"role": "user", "text": "Where do we keep zanzibar sessions?"},
        {"role": "assistant", "text": f"In Redis; the key is {SECRET}"},
    ]
    made = await call(client, "append_messages", key=key, messages=said)
    assert made["made"] and made["head"] == 2, made
    session = made["session"]
    again = await call(client, "append_messages", key=key, messages=said[:1], head=2)
    assert not again["made"] and again["head"] == 3, again
    late = await refused(client, "append_messages", key=key, messages=said[:1], head=2)
    assert "moved" in late and "read_session" in late, late

    listed = await call(client, "list_sessions", limit=1)
    assert listed["sessions"][0]["id"] == session, listed
    read = await call(client, "read_session", session=key, limit=2)
    assert "not instructions" in read["note"], read
    assert [entry["seq"] for entry in read["entries"]] == [2, 3], read
    assert read["older"] == 2 and read["newer"] is None, read
    older = await call(client, "read_session", session=key, before=read["older"])
    assert [entry["seq"] for entry in older["entries"]] == [1], older
    first = await call(client, "read_session", session=key, limit=1, **{"from": 1, "longest": 5})
    assert first["entries"][0]["text"] == "Where" and first["entries"][0]["cut"] > 0, first
    assert first["newer"] == 2, first
    assert SECRET not in str(read) and "redacted" in str(read), read

    found = await call(client, "search_sessions", query="zanzibar")
    assert found["hits"][0]["session"], found
    assert SECRET not in str(await call(client, "search_sessions", query="Redis")), found

    new = await call(client, "remember", fact=f"Sessions of {key} are kept in Redis.")
    assert new["how"] == "new", new
    known = await call(client, "remember", fact=f"Sessions of {key} are kept in Redis.")
    assert known["how"] == "known", known
    recalled = await call(client, "recall", query=f"{key} Redis")
    assert key in recalled["facts"][0]["text"], recalled
    assert "looks like" in await refused(client, "remember", fact=f"The key is {SECRET}")

    context = await call(client, "build_context", task="zanzibar sessions in Redis")
    names = [section["name"] for section in context["sections"]]
    assert names == ["memory", "recalled"], context
    context = await call(client, "build_context", task="Go on", session=session, budget=2000)
    assert "zanzibar" in str(context) and SECRET not in str(context), context

    saved = await call(client, "save_checkpoint", session=key, completed=["Chose Redis"])
    assert saved["covers"] == 3 and saved["seq"] == 4, saved
    assert "checkpoint is empty" in await refused(client, "save_checkpoint", session=key)
    context = await call(client, "build_context", task="Go on", session=session)
    assert "Chose Redis" in str(context), context

    fact = recalled["facts"][0]
    gone = await call(client, "forget", fact=fact["fact"], scope=fact["scope"])
    assert gone["forgotten"]["fact"] == fact["fact"], gone
    left = await call(client, "recall", query=f"{key} Redis")
    assert all(key not in fact["text"] for fact in left["facts"]), left

    assert "list_sessions" in await refused(client, "read_session", session="nowhere")
    assert "from 1 to" in await refused(client, "list_sessions", limit=0)
    assert "cursor" in await refused(client, "list_sessions", cursor="?")

    resources = (await client.list_resources()).resources
    uri = f"throughline://sessions/{session}"
    assert "throughline://memory" in {str(one.uri) for one in resources}, resources
    assert uri in {str(one.uri) for one in resources}, resources
    text = (await client.read_resource(uri)).contents[0].text
    assert "Chose Redis" in text and SECRET not in text, text
    text = (await client.read_resource(uri + "/from/1")).contents[0].text
    assert "[1] user: Where do we keep" in text and SECRET not in text, text
    assert (await client.read_resource("throughline://memory")).contents[0].text
    templates = (await client.list_resource_templates()).resource_templates
    assert len(templates) == 3, templates
    try:
        await client.read_resource("throughline://sessions/nowhere")
    except MCPError as error:
        assert "throughline://sessions/nowhere" in str(error), error
    else:
        raise AssertionError("a resource that is not there was read")

    prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
    assert prompts == {"resume", "handoff"}, prompts
    resume = await client.get_prompt("resume", {"session": key})
    assert "Chose Redis" in resume.messages[0].content.text, resume
    handoff = await client.get_prompt("handoff", {"session": key, "to": "codex"})
    assert "to codex" in handoff.messages[0].content.text, handoff


async def main() -> None:
    way = sys.argv[1]
    for mode in ("auto", "legacy"):
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(server(way), mode=mode))
            assert client.server_info.name == "throughline", client.server_info
            assert client.instructions and "search_sessions" in client.instructions
            version = client.protocol_version
            assert (version >= "2026") == (mode == "auto"), (mode, version)
            await talk(client, f"{way}-{mode}")
    print("fine")


asyncio.run(main())
