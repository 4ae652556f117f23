"""One peer in a process of its own: `python -m benchmarks.engine.peer NAME MODEL THREADS SLOTS TOKENS`.

Lines of JSON: first {} or {"unavailable": why}; then for each list of jobs when it began and when
each token came, on the monotonic clock that all processes share.
"""

import json
import os
import sys
from pathlib import Path
from time import monotonic
from typing import Protocol


class Model(Protocol):
    """A loaded model: prompts and numbers of tokens in, times of tokens out."""

    def run(self, prompts: list[list[int]], num_outputs: list[int]) -> list[list[float]]: ...
    def close(self) -> None: ...


def main() -> None:
    name, folder, threads, slots, longest_tokens = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print is no reply

    def reply(**values: object) -> None:
        replies.write(json.dumps(values) + "\n")
        replies.flush()

    try:
        model = _load(name, Path(folder), int(threads), int(slots), int(longest_tokens))
    except (ImportError, NotImplementedError) as error:
        reply(unavailable=str(error))
        return
    reply()
    for line in sys.stdin:
        jobs = json.loads(line)
        started_s = monotonic()
        token_s = model.run([j["prompt"] for j in jobs], [j["num_output"] for j in jobs])
        reply(started_s=started_s, token_s=token_s)
    model.close()


def _load(name: str, folder: Path, threads: int, slots: int, longest_tokens: int) -> Model:
    if name.startswith("llama.cpp"):
        from benchmarks.engine.llama_cpp_peer import LlamaCpp

        return LlamaCpp(folder, name.rpartition(" ")[2], threads, slots, longest_tokens)
    from benchmarks.engine import transformers_peer

    if name == "transformers generate":
        return transformers_peer.Generate(folder, threads)
    return transformers_peer.ContinuousBatching(folder, threads, slots, longest_tokens)


if __name__ == "__main__":
    main()
