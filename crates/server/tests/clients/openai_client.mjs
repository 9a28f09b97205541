// Tests the official JavaScript client against a running server.

import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.env.SERVER_URL}/v1`,
  apiKey: process.env.SERVER_KEY ?? "not-needed",
});

const talk = await client.conversations.create({
  metadata: { topic: "demo" },
  items: [{ type: "message", role: "user", content: "Hello!" }],
});
assert.deepEqual(await client.conversations.retrieve(talk.id), talk);
const noted = await client.conversations.update(talk.id, { metadata: { topic: "other" } });
assert.deepEqual(noted.metadata, { topic: "other" });

const added = await client.conversations.items.create(talk.id, {
  items: [
    { role: "assistant", content: "Hi." },
    { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "c1", output: "fine" },
  ],
});
assert.deepEqual(
  added.data.map((item) => item.type),
  ["message", "function_call", "function_call_output"],
);

const every = [];
for await (const item of client.conversations.items.list(talk.id, { order: "asc", limit: 3 })) {
  every.push(item);
  const alone = await client.conversations.items.retrieve(item.id, { conversation_id: talk.id });
  assert.deepEqual(alone, item);
}
assert.equal(every.length, 4);
const left = await client.conversations.items.delete(every[3].id, { conversation_id: talk.id });
assert.equal(left.id, talk.id);
await assert.rejects(
  client.conversations.items.retrieve(every[3].id, { conversation_id: talk.id }),
  OpenAI.NotFoundError,
);

const alone = await client.responses.create({ model: "any", input: "Who is there?" });
assert.equal(alone.output_text, "Heard 1 messages, the last one: Who is there?");
assert.equal(alone.usage.total_tokens, 120);

const room = await client.conversations.create();
const first = await client.responses.create({ model: "any", input: "One", conversation: room.id });
assert.equal(first.output_text, "Heard 1 messages, the last one: One");
const stream = await client.responses.create({
  model: "any",
  input: "Two",
  conversation: room.id,
  stream: true,
});
let said = "";
let last;
for await (const event of stream) {
  if (event.type === "response.output_text.delta") said += event.delta;
  last = event;
}
assert.equal(said, "Heard 3 messages, the last one: Two");
assert.equal(last.type, "response.completed");
const items = await client.conversations.items.list(room.id);
assert.equal(items.data[0].id, last.response.output[0].id);

const helper = client.responses.stream({ model: "any", input: "Three", conversation: room.id });
const final = await helper.finalResponse();
assert.equal(final.output_text, "Heard 5 messages, the last one: Three");

const tools = [
  { type: "function", name: "get_weather", strict: false, parameters: { type: "object", properties: {} } },
];
const asked = await client.responses.create({
  model: "any", input: "weather?", conversation: room.id, tools,
});
const [call] = asked.output;
assert.equal(call.type, "function_call");
const told = await client.responses.create({
  model: "any",
  conversation: room.id,
  tools,
  input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
});
assert.equal(told.output_text, "The tool says: sunny");

const gone = await client.conversations.delete(talk.id);
assert.deepEqual(gone, { id: talk.id, object: "conversation.deleted", deleted: true });
await assert.rejects(client.conversations.retrieve(talk.id), (error) => {
  assert(error instanceof OpenAI.NotFoundError);
  assert.equal(error.code, "conversation_not_found");
  return true;
});
console.log("fine");
