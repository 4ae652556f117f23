"""Tune a LoRA adapter of an embedding model, so that linear heads on its vectors tell labels apart:
`python -m inference.tuning EXAMPLES OUT`; or go on with one, in the layers from FIRST on (which takes
half as long for the upper half of them): `… --start ADAPTER --first-layer FIRST`.

EXAMPLES are JSON lines, each of one text: `pieces` are pairs of a text and its share, whose vectors
make one vector by their mean; `labels` are 0 or 1, one for each head; `counts` say how much each label
counts, 0 where it is not known. OUT becomes an adapter in PEFT's format, which the engine serves beside
its base. The heads are thrown away: whoever wants some fits them to the vectors (Howard and Ruder 2018,
"ULMFiT", section 3.3, for the rate that rises and falls).

Imports torch. The same examples give nearly the same adapter; the order of sums is the machine's.
"""

import argparse
import json
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, linear, normalize
from transformers import AutoModel

from inference.adapter_config import CONFIG_FILE
from inference.adapter_files import WEIGHTS_FILE
from inference.catalog import BUILTIN_EMBEDDING, discover
from inference.config import EngineConfig

logger = logging.getLogger(__name__)
RANK = 32
SCALE = 1.0
SERVED_SHARE = 0.5
"""Of what was learnt. Halfway from the base it knows both what it was tuned for and what it knew before
(Wortsman et al. 2022, "Robust fine-tuning of zero-shot models"): by moderation's folds it finds as many
injections as whole, and which sentence of a document is of another matter as well as the base does."""
NUM_EPOCHS = 4
_BATCH = 32  # texts
_RATE, _HEADS_RATE = 7e-4, 3e-3
RATE_GOING_ON = 4e-4
_WARM_STEPS = 100
_DROPOUT = 0.1
_LENGTH = 8.0  # of vectors before the heads, whose weights would have to grow for long else
_RARE = -3.0  # the logit that heads begin with: most labels seldom hold
_MAX_TOKENS = 256


@dataclass(frozen=True, slots=True)
class _Text:
    pieces: tuple[tuple[int, ...], ...]  # token ids
    shares: tuple[float, ...]
    labels: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def num_tokens(self) -> int:
        return max(map(len, self.pieces))


class _LowRank(nn.Module):
    """W·x + scale · B·A·x, of which A and B are trained."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.scale = SCALE
        self.a = nn.Parameter(torch.randn(RANK, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, RANK))
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.base(x)
        return out + linear(linear(self.dropout(x), self.a), self.b) * self.scale


def tune(
    base: Path,
    examples: Path,
    out: Path,
    *,
    num_epochs: int = NUM_EPOCHS,
    rate: float = _RATE,
    seed: int = 1,
    start: Path | None = None,
    first_layer: int = 0,
) -> None:
    """Read the examples, train, and write the adapter of the model in `base`.

    With the folder of an adapter to `start` with, it is gone on with as it is served, and only in layers
    from `first_layer` on; what drops out then are inputs of the adapter alone."""
    torch.manual_seed(seed)
    rng = random.Random(seed)  # noqa: S311 - the order of examples
    model: Any = AutoModel.from_pretrained(base, dtype=torch.float32, local_files_only=True)
    lows = _with_low_ranks(model)
    model.train()
    if start:
        model.eval()
        _go_on(lows, start, first_layer)
    texts = _read(examples, Tokenizer.from_file(str(base / "tokenizer.json")))
    heads = nn.Linear(model.config.hidden_size, len(texts[0].labels))
    nn.init.zeros_(heads.weight)
    nn.init.constant_(heads.bias, _RARE)
    parameters = [p for low in lows.values() for p in (low.a, low.b) if p.requires_grad]
    rates = ((rate, parameters), (_HEADS_RATE, list(heads.parameters())))
    optimiser = torch.optim.AdamW(
        [{"params": own, "lr": lr} for lr, own in rates], weight_decay=0.01
    )
    num_steps = num_epochs * -(-len(texts) // _BATCH)
    num_warm = max(1, min(_WARM_STEPS, num_steps // 10))
    rate_at = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: max(0.0, min(1.0, (step + 1) / num_warm) * (1 - step / num_steps))
    )
    for epoch in range(num_epochs):
        sum_of_losses = 0.0
        for batch in _batches(texts, rng):
            with torch.autocast("cpu", torch.bfloat16):
                vectors = _vectors(model, batch)
            loss = _loss(heads(vectors.float() * _LENGTH), batch)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            rate_at.step()
            sum_of_losses += loss.item() * len(batch)
        logger.info("epoch %d: loss %.3f", epoch + 1, sum_of_losses / len(texts))
    _write(lows, out, 1.0 if start else SERVED_SHARE)


def _with_low_ranks(model: nn.Module) -> dict[str, _LowRank]:
    """Beside each linear layer of the stack, by its path; nothing else is trained."""
    model.requires_grad_(requires_grad=False)
    found = {
        path: module
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear) and ".layer" in f".{path}"
    }
    lows = {}
    for path, module in found.items():
        owner, _, name = path.rpartition(".")
        lows[path] = _LowRank(module)
        setattr(model.get_submodule(owner), name, lows[path])
    return lows


def _go_on(lows: dict[str, _LowRank], start: Path, first_layer: int) -> None:
    """From the matrices of an adapter, those below `first_layer` as they are."""
    tensors = load_file(start / WEIGHTS_FILE)
    config = json.loads((start / CONFIG_FILE).read_text())
    for path, low in lows.items():
        low.a.data, low.b.data = (tensors[_name(path, which)].float() for which in "AB")
        low.scale = config["lora_alpha"] / config["r"]
        is_trained = int(path.partition("layer.")[2].partition(".")[0]) >= first_layer
        low.requires_grad_(is_trained).train(is_trained)


def _name(path: str, which: str) -> str:
    return f"base_model.model.{path}.lora_{which}.weight"


def _read(examples: Path, tokenizer: Tokenizer) -> list[_Text]:
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    texts = []
    with examples.open(encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            pieces, shares = zip(*one["pieces"], strict=True)
            ids = tuple(tuple(found.ids) for found in tokenizer.encode_batch(list(pieces)))
            texts.append(_Text(ids, shares, tuple(one["labels"]), tuple(one["counts"])))
    return texts


def _batches(texts: Sequence[_Text], rng: random.Random) -> Iterator[list[_Text]]:
    """All of them, in random order, those of like length together."""
    order = rng.sample(texts, len(texts))
    pool = _BATCH * 50
    batches = []
    for start in range(0, len(order), pool):
        alike = sorted(order[start : start + pool], key=lambda text: text.num_tokens)
        batches += [alike[at : at + _BATCH] for at in range(0, len(alike), _BATCH)]
    rng.shuffle(batches)
    yield from batches


def _vectors(model: nn.Module, batch: Sequence[_Text]) -> Tensor:
    """(texts, dimensions), of length 1: means of tokens for pieces, and of pieces for texts."""
    pieces = [torch.tensor(piece) for text in batch for piece in text.pieces]
    ids = nn.utils.rnn.pad_sequence(pieces, batch_first=True)
    mask = torch.arange(ids.shape[1]) < torch.tensor([len(piece) for piece in pieces])[:, None]
    hidden = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state.float()
    means = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    shares = torch.tensor([share for text in batch for share in text.shares])
    owners = torch.tensor([n for n, text in enumerate(batch) for _ in text.pieces])
    sums = torch.zeros(len(batch), means.shape[1])
    return normalize(sums.index_add(0, owners, normalize(means, dim=-1) * shares[:, None]), dim=-1)


def _loss(logits: Tensor, batch: Sequence[_Text]) -> Tensor:
    labels = torch.tensor([text.labels for text in batch])
    counts = torch.tensor([text.counts for text in batch])
    losses = binary_cross_entropy_with_logits(logits, labels, reduction="none")
    return (losses * counts).sum(1).mean()


def _write(lows: dict[str, _LowRank], out: Path, share: float) -> None:
    out.mkdir(parents=True, exist_ok=True)
    # By two names each: one layer called "dense" is the pooler's.
    (scale,) = {low.scale for low in lows.values()}
    names = sorted({".".join(path.split(".")[-2:]) for path in lows})
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": share * scale * RANK}
    config |= {"bias": "none"}
    config |= {"target_modules": names, "base_model_name_or_path": BUILTIN_EMBEDDING}
    (out / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n")
    tensors = {}
    for path, low in lows.items():
        for which, matrix in (("A", low.a), ("B", low.b)):
            tensors[_name(path, which)] = matrix.detach().bfloat16().contiguous()
    save_file(tensors, out / WEIGHTS_FILE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m inference.tuning", description=__doc__)
    parser.add_argument("examples", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--start", type=Path, help="the folder of an adapter to go on with")
    parser.add_argument("--first-layer", type=int, default=0, help="of those that are trained")
    parser.add_argument("--epochs", type=int, default=NUM_EPOCHS)
    parser.add_argument("--rate", type=float, help="7e-4, or 4e-4 to go on")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(arguments.threads)
    base = discover(EngineConfig(Path("var/models")))[BUILTIN_EMBEDDING].path
    assert base is not None
    rate = arguments.rate or (RATE_GOING_ON if arguments.start else _RATE)
    tune(
        base,
        arguments.examples,
        arguments.out,
        num_epochs=arguments.epochs,
        rate=rate,
        start=arguments.start,
        first_layer=arguments.first_layer,
    )


if __name__ == "__main__":
    main()
