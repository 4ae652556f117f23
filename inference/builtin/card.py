"""The model card: what the model is, and its scores as they were measured."""

import json
from collections.abc import Sequence
from math import prod
from pathlib import Path

from safetensors import safe_open

from inference.builtin.recipe import SHAPE, STAGES
from inference.builtin.score import SEED, Score, as_json, table

_CARD = """\
---
license: apache-2.0
language: en
pipeline_tag: text-generation
---

# vitrine-small

The chat model that comes with Vitrine, so that a machine without a network has a real transformer
doing the real job. It is **very small** and knows nothing of the world: it chats a little, remembers
what it was told, calls tools, copies answers out of passages, and says politely when something is
beyond it. For more, choose a larger model (`manage.py pull ORG/MODEL`).

| | |
| --- | --- |
| architecture | Qwen3: {layers} layers of {hidden}, {heads} heads ({kv_heads} for keys) of {head_dim} |
| parameters | {parameters:.2f} M in bfloat16, {size:.1f} MiB |
| vocabulary | {vocab:,} tokens, byte-level BPE (`tokenizer.json`, `vocab.tiktoken`) |
| context | {context:,} tokens |
| chat format | ChatML with Hermes tool calls |
| language | English |

## Where it comes from

Everything it has read was written by the grammars in `inference/builtin/skills/`, by
`python -m inference.builtin generate`. No text, weights or answers of other models went in. Training:
Muon for the matrices, AdamW for the rest, loss on the assistant's tokens only (in "dense", "calm",
"carried" and "calmer" also where a text repeats itself, for copying's sake), by
`python -m inference.builtin train`; on two processor cores up to "settled", then for seven minutes on
an H200 that another training shared (`--device cuda --stages wealth calmest --seconds 435`), then on a
processor again. Up to "last" these weights had another vocabulary, in which a word had other tokens
behind a space; `carry.py` took its embedding over, and "carried" begins there:

| stage | tokens | longest dialog | learning rate |
| --- | ---: | ---: | --- |
{stages}

From "chosen" on, what no copying tells of an answer counts several times: its first word, and each that
could go on in another way. "wealth" begins with the mean of the weights after "home" and after "settled"
(`python -m inference.builtin average`), which could more than either; its mixtures, and those of
"calmest", come in turns (`recipe.py`). "company" begins with the mean of the weights after "calmest" and
after "phrases"; before it, groups of phrasings were widened: what came to them is company for those that
scoring asks. Before "beside" they got more of it, which scoring never asks, where held-out phrasings had
failed; in "beside" things, animals and topics are often made-up words. "hard" begins with the mean of
the weights after "beside" and after "beyond". From it on gradients are taken from three in ten of the
batches that are read, those with the most loss (`hardest.py`), and titles are in the words and the case
that were typed: with a large first letter they are as right, and the chat shows them so. "harder" begins
with the mean of the weights before "hard" and after "hardest". In "asked" more is asked about one set of
documents. The weights here are the mean of those before and after it.

## What it can

Exact answers at temperature 0 (`python -m inference.builtin card`, seed {seed}). Names, words and
numbers are drawn afresh, and a share of the phrasings, chosen by a hash, is never trained on. "By
hand" are prompts as first-time users type them, written without the grammars.

{scores}

## Limits

Whatever is not in the list above. It was made to be exact on narrow skills, not to be fluent; it can
repeat a claim from a passage that is wrong, it follows instructions hidden in text, and outside of
English it only says that it cannot. Do not rely on it for anything that matters.
"""


def write(folder: Path, scores: Sequence[Score]) -> None:
    """Write README.md and scores.json beside the weights in `folder`."""
    counts = {
        name: {key: value for key, value in values.items() if key != "wrong"}
        for name, values in as_json(scores).items()
    }
    (folder / "scores.json").write_text(json.dumps(counts, indent=1) + "\n")
    weights = folder / "model.safetensors"
    with safe_open(weights, "pt") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    text = _CARD.format(
        layers=SHAPE.num_hidden_layers,
        hidden=SHAPE.hidden_size,
        heads=SHAPE.num_attention_heads,
        kv_heads=SHAPE.num_key_value_heads,
        head_dim=SHAPE.head_dim,
        parameters=sum(map(prod, shapes)) / 1e6,
        size=weights.stat().st_size / 2**20,
        vocab=SHAPE.vocab_size,
        context=SHAPE.max_position_embeddings,
        stages="\n".join(
            f"| {s.name} | {s.num_tokens / 1e6:.1f} M | {s.max_length:,} | {s.lr_from:g} → {s.lr_to:g} |"
            for s in STAGES
        ),
        seed=SEED,
        scores=table(scores),
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
