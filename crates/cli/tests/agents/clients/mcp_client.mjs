// The published MCP client for JavaScript, by each way to reach the server.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { HOME, THROUGHLINE_HOME, TL, SERVER_URL } = process.env;
const transport =
  process.argv[2] === "http"
    ? new StreamableHTTPClientTransport(new URL(`${SERVER_URL}/mcp`))
    : new StdioClientTransport({ command: TL, args: ["mcp"], env: { HOME, THROUGHLINE_HOME } });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
assert.equal(client.getServerVersion().name, "throughline");
assert.equal((await client.listTools()).tools.length, 9);

// The client checks structured content against the schema of the tool.
const call = async (name, args) => {
  const answer = await client.callTool({ name, arguments: args });
  assert.ok(!answer.isError, JSON.stringify(answer));
  return answer.structuredContent;
};
const messages = [{ role: "user", text: "Remember the aardvark." }];
const { session } = await call("append_messages", { key: "js", messages });
const read = await call("read_session", { session });
assert.equal(read.entries[0].text, "Remember the aardvark.");
assert.equal((await call("list_sessions", {})).sessions[0].id, session);
assert.equal((await call("remember", { fact: "Aardvarks eat ants." })).how, "new");
assert.equal((await call("recall", { query: "aardvarks" })).facts.length, 1);
assert.equal((await call("search_sessions", { query: "aardvark" })).hits.length, 1);
assert.ok((await call("build_context", { task: "aardvark" })).sections.length);
assert.equal((await call("save_checkpoint", { session, pending: ["Ants"] })).covers, 1);
assert.equal((await call("forget", { fact: 1 })).forgotten.fact, 1);
const missing = await client.callTool({ name: "read_session", arguments: { session: "no" } });
assert.ok(missing.isError && missing.content[0].text.includes("list_sessions"));
const { resources } = await client.listResources();
assert.ok(resources.some((one) => one.uri === `throughline://sessions/${session}`));
const resume = await client.getPrompt({ name: "resume", arguments: {} });
assert.ok(resume.messages[0].content.text.includes("aardvark"));
await client.close();
console.log("fine");
