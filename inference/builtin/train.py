"""Training: stages of a recipe, checkpoints, export. Run by `python -m inference.builtin train`.

A stage fixes its share of tokens, the longest dialog, the weights of the skills and the learning
rates. A run stopped at any time goes on from its last checkpoint.
"""

import itertools
import json
import logging
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from inference.builtin import MODEL_DIR
from inference.builtin.carry import carried
from inference.builtin.mixture import Style, training_dialogs
from inference.builtin.network import Network, Shape, from_hub, hub_config, initialise, to_hub
from inference.builtin.optim import Optimiser
from inference.builtin.packing import Batch, batches, copying_batch
from inference.builtin.template import END_OF_TEXT, IM_END
from inference.builtin.tokenizer import load as load_tokenizer
from inference.builtin.tokenizer import name_pieces

logger = logging.getLogger(__name__)

WORK_DIR = Path("var/builtin")


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training with one mixture and a straight line of learning rates."""

    name: str
    num_tokens: int
    max_length: int
    step_tokens: int
    lr_from: float
    """Muon's learning rate at the start; AdamW's is `ADAM_SHARE` of it."""
    lr_to: float
    seed: int
    weights: dict[str, float] = field(default_factory=dict)
    """Weights of skills that differ from the mixture's own."""
    copying: float = 0.0
    """Share of the batches that are random tokens to copy."""
    is_short: bool = False
    """Short and dense dialogs; see `Style`."""
    has_pieces: bool = False
    """Names from pieces of the vocabulary; see `Style`."""
    with_repeats: bool = False
    """Repeats are targets as well; see `rows_of`."""


ADAM_SHARE = 0.3
BATCH_TOKENS = 2048  # small, so that a step mixes dialogs of several lengths
CHECKPOINT_EVERY_S = 120


class Trainer:
    """The network, its master weights and its optimiser."""

    def __init__(self, shape: Shape, *, seed: int = 1, is_compiled: bool = True) -> None:
        self.shape = shape
        self.network = Network(shape)
        initialise(self.network, seed)
        self.masters = {n: p.detach().clone() for n, p in self.network.named_parameters()}
        self.network.bfloat16()
        self.weights = dict(self.network.named_parameters())
        q = shape.num_attention_heads * shape.head_dim
        kv = shape.num_key_value_heads * shape.head_dim
        parts = {"qkv": (q, kv, kv), "gate_up": (shape.intermediate_size,) * 2}
        self.optimiser = Optimiser(self.masters, parts)
        self.grads = {n: torch.zeros_like(m) for n, m in self.masters.items()}
        if is_compiled:
            torch._dynamo.config.cache_size_limit = 64  # one graph for each row length
            for block in self.network.blocks:
                block.compile(dynamic=False)

    def accumulate(self, batch: Batch) -> tuple[float, int]:
        """Add a batch's gradients; returns its summed loss and its number of targets."""
        ids, places, targets = tensors_of(batch)
        loss = self.network.loss(ids, places, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        for name, weight in self.weights.items():
            assert weight.grad is not None
            self.grads[name] += weight.grad.float()
            weight.grad = None
        return float(loss.detach()), len(targets)

    def step(self, num_targets: int, lr: float) -> None:
        """Update from the accumulated gradients and clear them."""
        for grad in self.grads.values():
            grad /= num_targets
        self.optimiser.step(self.grads, muon_lr=lr, adam_lr=lr * ADAM_SHARE, decay=0.02)
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(self.masters[name])
                self.grads[name].zero_()

    def save(self, folder: Path, progress: dict[str, int]) -> None:
        """Write a checkpoint; the old one is replaced at once."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"master.{n}": t for n, t in self.masters.items()} | self.optimiser.state()
        save_file(tensors, folder / "checkpoint.new")
        progress = progress | {"steps": self.optimiser.num_steps}
        (folder / "checkpoint.new").rename(folder / "checkpoint.safetensors")
        (folder / "progress.json").write_text(json.dumps(progress))

    def load(self, folder: Path) -> dict[str, int]:
        """Go on from a checkpoint; returns its progress."""
        progress: dict[str, int] = json.loads((folder / "progress.json").read_text())
        tensors = load_file(folder / "checkpoint.safetensors")
        self.optimiser.load_state(tensors, progress["steps"])
        _set_masters(self, {n: tensors[f"master.{n}"] for n in self.masters})
        return progress

    def start_from(self, folder: Path) -> None:
        """Begin with the weights of an exported model, with fresh moments.

        The model may have another vocabulary: then the rows of its embedding are carried over.
        """
        weights = from_hub(self.shape, load_file(folder / "model.safetensors"))
        theirs, ours = load_tokenizer(folder), load_tokenizer()
        if theirs.get_vocab() != ours.get_vocab():
            weights["embedding"] = carried(weights["embedding"], theirs, ours)
        _set_masters(self, weights)


def _set_masters(trainer: Trainer, weights: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, master in trainer.masters.items():
            master.copy_(weights[name])
            trainer.weights[name].copy_(master)


def tensors_of(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Padded ids (rows, length), flat positions whose next token is a target, and those tokens."""
    ids = torch.zeros((len(batch.rows), batch.length), dtype=torch.long)
    places: list[int] = []
    targets: list[int] = []
    for number, row in enumerate(batch.rows):
        ids[number, : len(row.ids)] = torch.tensor(row.ids)
        found = [i for i, is_target in enumerate(row.is_target) if is_target]
        places += [number * batch.length + i - 1 for i in found]
        targets += [row.ids[i] for i in found]
    return ids, torch.tensor(places), torch.tensor(targets)


def train(
    stages: list[Stage],
    folder: Path,
    shape: Shape,
    *,
    is_compiled: bool = True,
    start: Path | None = None,
) -> None:
    """Run the stages that are not done yet; the checkpoint in `folder` says which.

    Without a checkpoint the weights are random, or those of the exported model in `start`.
    """
    trainer = Trainer(shape, is_compiled=is_compiled)
    progress = {"stage": 0, "tokens": 0, "batches": 0}
    if (folder / "progress.json").exists():
        progress = trainer.load(folder)
        logger.info("resuming at stage %(stage)d after %(tokens)d tokens", progress)
    elif start is not None:
        trainer.start_from(start)
    for number in range(progress["stage"], len(stages)):
        if number != progress["stage"]:
            progress = {"stage": number, "tokens": 0, "batches": 0}
        _run(trainer, stages[number], folder, progress)
        progress = {"stage": number + 1, "tokens": 0, "batches": 0}
        trainer.save(folder, progress)
        export(trainer, folder / "export")


def _run(trainer: Trainer, stage: Stage, folder: Path, progress: dict[str, int]) -> None:
    stream = _batches(stage, skip=progress["batches"])
    saved = shown = time.monotonic()
    loss_sum = target_sum = tokens_shown = 0.0
    while progress["tokens"] < stage.num_tokens:
        num_targets = num_tokens = 0
        while num_tokens < stage.step_tokens:
            batch = next(stream)
            loss, count = trainer.accumulate(batch)
            progress["batches"] += 1
            num_tokens += batch.num_tokens
            num_targets += count
            loss_sum += loss
        share = progress["tokens"] / stage.num_tokens
        warm = min(1.0, (trainer.optimiser.num_steps + 1) / 100)
        trainer.step(num_targets, warm * (stage.lr_from + (stage.lr_to - stage.lr_from) * share))
        progress["tokens"] += num_tokens
        target_sum += num_targets
        tokens_shown += num_tokens
        now = time.monotonic()
        if now - shown > 30:
            rate = tokens_shown / (now - shown)
            logger.info(
                "%s step %d tokens %.2fM loss %.4f %d tok/s",
                stage.name, trainer.optimiser.num_steps, progress["tokens"] / 1e6,
                loss_sum / target_sum, rate,
            )  # fmt: skip
            loss_sum = target_sum = tokens_shown = 0.0
            shown = now
        if now - saved > CHECKPOINT_EVERY_S:
            trainer.save(folder, progress)
            export(trainer, folder / "export")
            saved = now


def _batches(stage: Stage, skip: int) -> Iterator[Batch]:
    """The batches of a stage; the first `skip` of them are made and dropped."""
    rng = random.Random(stage.seed)
    tokenizer = load_tokenizer()
    style = Style(stage.is_short, name_pieces(tokenizer) if stage.has_pieces else ())
    dialogs = training_dialogs(stage.seed, stage.weights, style=style)
    stream = batches(
        tokenizer,
        dialogs,
        batch_tokens=BATCH_TOKENS,
        max_length=stage.max_length,
        seed=stage.seed,
        with_repeats=stage.with_repeats,
    )
    vocab_size = tokenizer.get_vocab_size(with_added_tokens=False)
    for number in itertools.count():
        if rng.random() < stage.copying:
            length = rng.choice([n for n in (128, 256, 512) if n <= stage.max_length])
            batch = copying_batch(rng, vocab_size, batch_tokens=BATCH_TOKENS, length=length)
        else:
            batch = next(stream)
        if number >= skip:
            yield batch


def export(trainer: Trainer, folder: Path) -> None:
    """Write the weights in bfloat16 with the configuration for the hub's loaders."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer()
    weights = {n: master.to(torch.bfloat16) for n, master in trainer.masters.items()}
    save_file(
        to_hub(trainer.shape, weights), folder / "model.safetensors", metadata={"format": "pt"}
    )
    (folder / "model.safetensors").chmod(0o644)
    eos, pad = (tokenizer.token_to_id(token) for token in (IM_END, END_OF_TEXT))
    assert eos is not None
    assert pad is not None
    config = hub_config(trainer.shape, eos_id=eos, pad_id=pad)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"do_sample": False, "temperature": 0.0, "eos_token_id": [eos, pad]}
    generation |= {"pad_token_id": pad}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    for name in (
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "vocab.tiktoken",
    ):
        if folder != MODEL_DIR:
            (folder / name).write_bytes((MODEL_DIR / name).read_bytes())


def publish(folder: Path) -> None:
    """Overwrite the committed model with the last export of a run."""
    for name in ("model.safetensors", "config.json", "generation_config.json"):
        (MODEL_DIR / name).write_bytes((folder / "export" / name).read_bytes())
