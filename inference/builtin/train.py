"""Training: stages of a recipe, checkpoints, export. Run by `python -m inference.builtin train`.

A run stopped at any time goes on from its last checkpoint.
"""

import json
import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from inference.builtin import MODEL_DIR
from inference.builtin.carry import carried
from inference.builtin.hardest import Hardest
from inference.builtin.network import (
    Network,
    Rows,
    Shape,
    deepened,
    from_hub,
    hub_config,
    initialise,
    to_hub,
)
from inference.builtin.optim import Optimiser
from inference.builtin.packing import Batch
from inference.builtin.packs import Pack
from inference.builtin.stage import Stage, batches_of, packs_of
from inference.builtin.template import END_OF_TEXT, IM_END
from inference.builtin.tokenizer import load as load_tokenizer

logger = logging.getLogger(__name__)

WORK_DIR = Path("var/builtin")


ADAM_SHARE = 0.3
CHECKPOINT_EVERY_S = 120


class Trainer:
    """The network, its master weights and its optimiser."""

    def __init__(
        self, shape: Shape, *, seed: int = 1, is_compiled: bool = True, device: str = "cpu"
    ) -> None:
        self.shape = shape
        self.device = torch.device(device)
        self.network = Network(shape)
        initialise(self.network, seed)
        self.network.to(self.device)
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

    def accumulate(
        self, batch: Batch | Pack, hardest: Hardest | None = None
    ) -> tuple[Tensor, int, bool]:
        """Add a batch's gradients, if it is among the hardest (all are without); returns its summed loss
        (still on the device), its targets, and whether it was."""
        if isinstance(batch, Pack):
            loss, num_targets = self._loss_of_pack(batch), batch.num_targets
        else:
            ids, places, targets = (tensor.to(self.device) for tensor in tensors_of(batch))
            loss, num_targets = self.network.loss(ids, places, targets), len(targets)
        if hardest is not None and not hardest.keeps(float(loss.detach())):
            return loss.detach(), num_targets, False
        loss.backward()  # type: ignore[no-untyped-call]
        for name, weight in self.weights.items():
            assert weight.grad is not None
            self.grads[name] += weight.grad.float()
            weight.grad = None
        return loss.detach(), num_targets, True

    def _loss_of_pack(self, pack: Pack) -> Tensor:
        arrays = (pack.ids, pack.positions, pack.starts, pack.places, pack.targets, pack.counts)
        ids, positions, starts, places, targets, counts = (
            (made.pin_memory() if self.device.type == "cuda" else made).to(
                self.device, non_blocking=True
            )
            for made in map(torch.from_numpy, arrays)
        )
        rows = Rows(positions, starts, int(np.diff(pack.starts).max()))
        return self.network.loss(ids[None], places, targets.long(), counts, rows)

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

        The model may have another vocabulary: then the rows of its embedding are carried over. It may
        have fewer layers: then new ones stand among them, which change nothing until they have learnt.
        """
        num_theirs = json.loads((folder / "config.json").read_text())["num_hidden_layers"]
        shape = replace(self.shape, num_hidden_layers=num_theirs)
        found = from_hub(shape, load_file(folder / "model.safetensors"))
        weights = {**self.masters, **deepened(found, num_theirs, self.shape.num_hidden_layers)}
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
    """Padded ids (rows, length), flat positions whose next token is a target, and those tokens; what
    counts several times is there as often."""
    ids = torch.zeros((len(batch.rows), batch.length), dtype=torch.long)
    places: list[int] = []
    targets: list[int] = []
    for number, row in enumerate(batch.rows):
        ids[number, : len(row.ids)] = torch.tensor(row.ids)
        found = [i for i, count in enumerate(row.counts) for _ in range(count)]
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
    device: str = "cpu",
    num_generators: int = 1,
    limit_s: float | None = None,
) -> None:
    """Run the stages that are not done yet; the checkpoint in `folder` says which.

    Without a checkpoint the weights are random, or those of the exported model in `start`. A GPU reads
    packs, one a step, and wants several `num_generators`, the processes that write dialogs. Within
    `limit_s`, of which each stage has its share by tokens, a stage may end early; the learning rate then
    falls by the time that is gone.
    """
    trainer = Trainer(shape, is_compiled=is_compiled, device=device)
    progress = {"stage": 0, "tokens": 0, "batches": 0}
    if (folder / "progress.json").exists():
        progress = trainer.load(folder)
        logger.info("resuming at stage %(stage)d after %(tokens)d tokens", progress)
    elif start is not None:
        trainer.start_from(start)
    started = time.monotonic()
    left_tokens = sum(stage.num_tokens for stage in stages[progress["stage"] :])
    made: Callable[[Stage, int, int], Generator[Batch | Pack, None, None]]
    for number in range(progress["stage"], len(stages)):
        if number != progress["stage"]:
            progress = {"stage": number, "tokens": 0, "batches": 0}
        stage = stages[number]
        stage_s = None
        if limit_s is not None:
            left_s = started + limit_s - time.monotonic()
            stage_s = left_s * stage.num_tokens / left_tokens
        left_tokens -= stage.num_tokens
        made = packs_of if device == "cuda" or stage.parts else batches_of
        with closing(made(stage, progress["batches"], num_generators)) as stream:
            _run(trainer, stage, stream, folder, progress, stage_s)
        progress = {"stage": number + 1, "tokens": 0, "batches": 0}
        trainer.save(folder, progress)
        export(trainer, folder / "export")


def _run(
    trainer: Trainer,
    stage: Stage,
    stream: Iterator[Batch | Pack],
    folder: Path,
    progress: dict[str, int],
    limit_s: float | None,
) -> None:
    hardest = Hardest(stage.keep_share) if stage.keep_share < 1 else None
    started = saved = shown = time.monotonic()
    target_sum = tokens_shown = 0
    loss_sum: Tensor | float = 0.0
    while (share := _share_done(stage, progress, time.monotonic() - started, limit_s)) < 1:
        num_targets = num_tokens = num_learnt = 0
        while num_learnt < stage.step_tokens:
            batch = next(stream)
            loss, count, is_learnt = trainer.accumulate(batch, hardest)
            progress["batches"] += 1
            num_tokens += batch.num_tokens
            num_learnt += batch.num_tokens if is_learnt else 0
            num_targets += count
            loss_sum = loss_sum + loss
            if isinstance(batch, Pack):
                break
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
                float(loss_sum) / target_sum, rate,
            )  # fmt: skip
            loss_sum, target_sum, tokens_shown = 0.0, 0, 0
            shown = now
        if now - saved > CHECKPOINT_EVERY_S:
            trainer.save(folder, progress)
            export(trainer, folder / "export")
            saved = now


def _share_done(
    stage: Stage, progress: dict[str, int], gone_s: float, limit_s: float | None
) -> float:
    """How much of a stage is done, by its tokens or by the time that it has, whichever is more."""
    of_time = gone_s / limit_s if limit_s else 0.0
    return max(progress["tokens"] / stage.num_tokens, of_time)


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
