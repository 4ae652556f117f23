import assert from "node:assert/strict";
import { test } from "node:test";

import { droppedWords, figuresOf, rowsOf, unsearchedOf } from "../../static/js/retrieval-words.js";

const candidate = (chunk, dropped = null, more = {}) => ({
  chunk, dropped, lexical_rank: 1, vector_rank: null, cosine: null, coverage: 0.5, relevance: null, ...more,
});

test("what was shown comes first, by its number, and the best of the others follow", () => {
  const excerpts = [{ number: 1, chunks: [4] }, { number: 2, chunks: [1, 2] }];
  const candidates = [candidate(1), candidate(3, "threshold"), candidate(4), candidate(2), candidate(5, "budget")];
  const rows = rowsOf({ excerpts, candidates });
  assert.deepEqual(rows.map(({ number, candidate: { chunk } }) => [number, chunk]), [[1, 4], [2, 1], [2, 2], [null, 3], [null, 5]]);
});

test("what was shown and never searched for is known", () => {
  const excerpts = [{ number: 1, chunks: [] }, { number: 2, chunks: [8, 9] }, { number: 3, chunks: [3, 4] }];
  assert.deepEqual(unsearchedOf({ excerpts, candidates: [candidate(4)] }).map(({ number }) => number), [1, 2]);
});

test("each reason has its words, one that is new its name", () => {
  for (const reason of ["threshold", "similar", "budget", "unwanted", "limit"]) {
    assert.match(droppedWords(reason), / /);
  }
  assert.equal(droppedWords("boring"), "boring");
});

test("figures are told as far as they are there", () => {
  const told = (more) => figuresOf(candidate(1, null, more)).map(({ words, figure }) => `${words} ${figure}`);
  assert.deepEqual(told(), ["by words #1", "by meaning –", "words covered 50%"]);
  assert.deepEqual(told({ vector_rank: 3, cosine: 0.617, relevance: 0.9 }), [
    "by words #1", "by meaning #3", "cosine 0.62", "words covered 50%", "by the reranker 0.90",
  ]);
});
