"""What fewer bits cost and bring: logits against those of the same weights in float32, computed by
transformers; and of ours, what weights take in memory, and a token of one sequence in time.

In a process of its own, for a model of random weights or a real one:
`python -m benchmarks.engine.accuracy MODEL [SYSTEM …]`, where a system is one of our types of weights
(`bfloat16+fp8`: with a cache of fp8) or a peer. Ours compute on a GPU where torch finds one, whose types
of few bits are fp8 and int4. Each reads one text that the float32 model wrote at temperature 1, so that
it is usual for it.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import table
from benchmarks.engine.systems import PEERS
from inference.config import DTYPES, EngineConfig
from inference.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

_NUM_TOKENS = 128
_CHUNK_TOKENS = 24  # as beside streams
_NUM_TIMED = 16  # single tokens behind the text
_UNKNOWN: table.Row = {"weights MiB": None, "a token ms": None}


@dataclass(frozen=True, slots=True)
class Loss:
    """Of all tokens of the text: the norm of the error over that of the logits (each token's mean taken
    off, as softmax does), the mean Kullback-Leibler divergence, and how often the likeliest token is the
    same."""

    logits_error: float
    kl_nats: float
    same_top: float


def measure_accuracy(model: Path, systems: Sequence[str]) -> list[table.Row]:
    """A row for each system that runs here."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine.accuracy", str(model), *systems],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def loss(found: "Tensor", expected: "Tensor") -> Loss:
    """Both (tokens, vocab) in float32."""
    found, expected = (t - t.mean(-1, keepdim=True) for t in (found, expected))
    log_p, log_q = expected.log_softmax(-1), found.log_softmax(-1)
    return Loss(
        float((found - expected).norm() / expected.norm()),
        float((log_p.exp() * (log_p - log_q)).sum(-1).mean()),
        float((found.argmax(-1) == expected.argmax(-1)).float().mean()),
    )


def _rows(model: Path, systems: Sequence[str]) -> Iterator[table.Row]:
    text, expected = _reference(model)
    for name in systems:
        try:
            if is_ours := name.partition("+")[0] in DTYPES:
                logits, gains = _by_vitrine(model, name, text)
            else:
                logits, gains = _by_peer(model, name, text), _UNKNOWN
            found = loss(logits, expected)
        except (ModelError, ImportError, NotImplementedError) as error:
            print(f"{name} is skipped: {error}", file=sys.stderr)
            continue
        row = {
            "system": f"vitrine {name}" if is_ours else name,
            "logits error %": 100 * found.logits_error,
            "KL nats": found.kl_nats,
            "same first choice %": 100 * found.same_top,
            **gains,
        }
        yield row


def _reference(model: Path) -> "tuple[list[int], Tensor]":
    """A text, and the logits behind each of its tokens but the last, (tokens - 1, vocab)."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    exact: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    with torch.inference_mode():
        begin = torch.tensor([[exact.config.bos_token_id or 1]])
        text = exact.generate(
            begin,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            min_new_tokens=_NUM_TOKENS - 1,
            max_new_tokens=_NUM_TOKENS - 1,
            pad_token_id=0,
        )
        return text[0].tolist(), exact(text).logits[0, :-1].float()


def _by_vitrine(model: Path, name: str, text: list[int]) -> "tuple[Tensor, table.Row]":
    import torch

    from inference.assembly import assemble
    from inference.engine_loop import EngineLoop
    from inference.messages import GenerateRequest, SamplingParams
    from inference.sequence import Sequence as Running

    dtype, _, cache = name.partition("+")
    config = EngineConfig(
        models_dir=model.parent / "none", dtype=dtype, kv_dtype=cache or "auto", max_num_drafting=0
    )
    loop, info = assemble(model.name, model, config, lambda phase, share: None)
    assert isinstance(loop, EngineLoop)
    params = SamplingParams(max_tokens=1, num_prompt_logprobs=0)
    running = Running(GenerateRequest("text", model.name, tuple(text), params))
    loop.kv.reserve(running.id, len(text) + 1 + _NUM_TIMED)
    found = []
    while running.num_pending:
        result = loop.runner.run([(running, min(_CHUNK_TOKENS, running.num_pending))])
        found += [logits for _, logits in result.prompts]
    took_s = []
    for token_id in text[:_NUM_TIMED]:
        running.token_ids.append(token_id)
        started_s = time.perf_counter()
        loop.runner.run([(running, 1)])
        loop.runner.wait()
        took_s.append(time.perf_counter() - started_s)
    return torch.cat(found).cpu(), {
        "weights MiB": info.weights_bytes / 2**20,
        "a token ms": 1e3 * median(took_s),
    }


def _by_peer(model: Path, name: str, text: list[int]) -> "Tensor":
    import torch

    if name.startswith("llama.cpp"):
        from benchmarks.engine.llama_cpp_peer import LlamaCpp

        peer = LlamaCpp(model, PEERS[name], torch.get_num_threads(), 1, len(text))
        found = torch.from_numpy(peer.logits(text))[:-1]
        peer.close()
        return found
    from transformers import AutoModelForCausalLM

    own = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()
    with torch.inference_mode():
        return own(torch.tensor([text])).logits[0, :-1].float()


def _main() -> None:
    model, *systems = sys.argv[1:]
    for row in _rows(Path(model), systems or ("bfloat16", "int8", "int4")):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    _main()
