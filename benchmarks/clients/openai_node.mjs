// openai-node: streaming, tools, structured output, responses, embeddings, its own exceptions.
import OpenAI from "openai";

const { BASE_URL, KEY, LIMITED_KEY, MODEL, EMBEDDING_MODEL } = process.env;
const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 0 });
const messages = [{ role: "user", content: "What is 2 plus 2?" }];
const parameters = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Oslo"] } },
  required: ["city"],
  additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "get_weather", parameters } }];
const ask = (more = {}) =>
  client.chat.completions.create({ model: MODEL, messages, max_tokens: 60, ...more });

function must(condition, text) {
  if (!condition) throw new Error(text);
}

async function raises(expected, call) {
  try {
    await call();
  } catch (error) {
    must(error.constructor === expected, `${error.constructor.name} in place of ${expected.name}`);
    return expected.name;
  }
  throw new Error(`no ${expected.name}`);
}

const checks = {
  answer: async () => (await ask()).choices[0].message.content,
  streaming: async () => {
    let count = 0;
    let text = "";
    for await (const chunk of await ask({ stream: true })) {
      count += 1;
      text += chunk.choices[0]?.delta?.content ?? "";
    }
    must(text, "no text");
    return `${count} chunks`;
  },
  tools: async () => {
    const done = await ask({ tools, tool_choice: "required" });
    return done.choices[0].message.tool_calls[0].function.arguments;
  },
  "tools, streamed": async () => {
    const stream = client.chat.completions.stream({
      model: MODEL, messages, tools, tool_choice: "required", max_tokens: 60,
    });
    const done = await stream.finalChatCompletion();
    return JSON.parse(done.choices[0].message.tool_calls[0].function.arguments).city;
  },
  "structured output": async () => {
    const json_schema = { name: "place", strict: true, schema: parameters };
    const done = await ask({ response_format: { type: "json_schema", json_schema } });
    return JSON.parse(done.choices[0].message.content).city;
  },
  responses: async () => {
    const stream = client.responses.stream({ model: MODEL, input: "Name a colour." });
    const first = await stream.finalResponse();
    const again = await client.responses.create({
      model: MODEL, input: "Another", previous_response_id: first.id,
    });
    await client.responses.delete(first.id);
    must(again.status === "completed", again.status);
    return again.output_text;
  },
  embeddings: async () => {
    const done = await client.embeddings.create({ model: EMBEDDING_MODEL, input: ["one", "two"] });
    return `${done.data.length} of ${done.data[0].embedding.length}`;
  },
  models: async () => {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    return names.join(", ");
  },
  "wrong key": () =>
    raises(OpenAI.AuthenticationError, () => client.withOptions({ apiKey: "vt_wrong" }).models.list()),
  "no such model": () => raises(OpenAI.NotFoundError, () => ask({ model: "nothing" })),
  "wrong parameter": () => raises(OpenAI.BadRequestError, () => ask({ temperature: 9 })),
  "over the limit": () => {
    const other = client.withOptions({ apiKey: LIMITED_KEY });
    return raises(OpenAI.RateLimitError, () =>
      other.chat.completions.create({ model: MODEL, messages }));
  },
};

for (const [check, run] of Object.entries(checks)) {
  let told;
  try {
    told = { check, ok: true, seen: String(await run()) };
  } catch (error) {
    console.error(error);
    told = { check, ok: false, seen: String(error) };
  }
  console.log(JSON.stringify(told));
}
