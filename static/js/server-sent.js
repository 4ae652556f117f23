// @ts-check
/** Server-sent events of a request that is no GET, which EventSource cannot make. */

/**
 * The JSON of each event's data, in order.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<any>}
 */
export async function* serverSent(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const lines = block.split("\n").filter((line) => line.startsWith("data:"));
        if (lines.length) yield JSON.parse(lines.map((line) => line.slice(5).trim()).join("\n"));
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // the server stops when nobody reads
  }
}
