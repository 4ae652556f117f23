"""Packs lose and mix up nothing: what a GPU is trained on is what the rows say."""

import json
import random
from contextlib import closing
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inference.builtin.network import Network, Rows, Shape, initialise
from inference.builtin.packing import Batch, Row
from inference.builtin.packs import Pack, packs
from inference.builtin.stage import Stage, packs_of
from inference.builtin.train import Trainer, tensors_of, train

SHAPE = Shape(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, head_dim=16)


def rows(seed: int, count: int, longest: int) -> list[Row]:
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        length = rng.randint(1, longest)
        counts = tuple(rng.choice((0, 0, 0, 1, 1, 6)) for _ in range(length))
        made.append(Row(tuple(rng.randrange(1, 96) for _ in range(length)), counts))
    return made


def rows_in(pack: Pack) -> list[tuple[int, ...]]:
    found = [tuple(pack.ids[a:b].tolist()) for a, b in pairwise(pack.starts) if a < b]
    return [ids for ids in found if any(ids)]  # others fill up


@given(seed=st.integers(0, 10_000), size=st.integers(100, 700))
def test_packs_hold_every_row_once_in_order_with_its_targets(seed: int, size: int) -> None:
    given_rows = [row for row in rows(seed, 60, 40) if any(row.counts)]
    end = Row((1,) * size, (0,) * size)  # so that the last of them are handed out as well
    made = list(packs([*given_rows, end], size))
    assert [ids for pack in made for ids in rows_in(pack)] == [row.ids for row in given_rows]
    assert sum(pack.num_tokens for pack in made) == sum(len(row.ids) for row in given_rows)
    wanted = [c for row in given_rows for c in row.counts[1:] if c]
    assert [int(c) for pack in made for c in pack.counts if c] == wanted
    for pack in made:
        assert pack.ids.shape == pack.positions.shape == (size,)
        assert pack.num_targets == pack.counts.sum()
        taken = pack.counts > 0
        assert (pack.ids[pack.places[taken] + 1] == pack.targets[taken]).all()
        assert (pack.positions[pack.places[taken] + 1] > 0).all(), "of the same row"
        assert pack.positions.max() < max(256, *(len(row.ids) for row in given_rows))
        assert (np.diff(pack.starts) > 0).all()
        assert pack.starts[-1] == size


def test_a_pack_has_the_loss_of_its_rows_padded_one_by_one() -> None:
    network = Network(SHAPE)
    initialise(network, 1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(2)) * 0.1)
    given_rows = rows(3, 30, 90)
    pack = next(packs([*given_rows, Row((1,) * 2000, (0,) * 2000)], 2000))
    alone = sum(
        network.loss(*tensors_of(Batch((replace(row, counts=(0, *row.counts[1:])),), 96))).item()
        for row in given_rows
    )
    positions, starts, places, targets, counts, ids = map(
        torch.from_numpy,
        (pack.positions, pack.starts, pack.places, pack.targets, pack.counts, pack.ids),
    )
    together = network.loss(
        ids[None], places, targets.long(), counts, Rows(positions, starts, 2000)
    )
    assert together.item() == pytest.approx(alone, rel=1e-4)


def test_a_step_by_a_pack_moves_the_weights_as_one_by_its_rows_does() -> None:
    given_rows = [replace(row, counts=(0, *row.counts[1:])) for row in rows(5, 12, 60)]
    moved = []
    for batches in (
        [Batch((row,), 64) for row in given_rows if any(row.counts)],
        [next(packs([*given_rows, Row((1,) * 900, (0,) * 900)], 900))],
    ):
        trainer = Trainer(SHAPE, is_compiled=False)
        num_targets = sum(trainer.accumulate(batch)[1] for batch in batches)
        moved.append({name: grad / num_targets for name, grad in trainer.grads.items()})
    for name, grad in moved[0].items():
        assert (grad - moved[1][name]).norm() <= 0.03 * grad.norm() + 1e-6, name  # of bfloat16


def test_parts_come_in_turns_and_the_same_from_several_processes() -> None:
    part = Stage("s", 1, 256, 1, 0.1, 0.1, 3, is_short=True)
    stage = replace(part, step_tokens=2000, parts=(part, replace(part, seed=4, max_length=96)))
    alone = [packs_of(_of_process(stage, number)) for number in (0, 1)]
    wanted = [next(alone[number % 2]) for number in range(5)]
    assert max(np.diff(next(packs_of(stage)).starts)) > 96
    with closing(packs_of(stage, 1, num_processes=2)) as stream:
        for found, pack in zip(islice(stream, 4), wanted[1:], strict=True):
            assert (found.ids == pack.ids).all()
            assert (found.counts == pack.counts).all()
    assert sum(np.diff(wanted[3].starts) > 96) <= (2000 - wanted[3].num_tokens) // 96


def _of_process(stage: Stage, number: int) -> Stage:
    parts = tuple(replace(part, seed=part.seed * 1000 + number) for part in stage.parts)
    return replace(stage, seed=stage.seed * 1000 + number, parts=parts)


def test_a_training_with_a_limit_ends_in_time_with_all_its_stages(tmp_path: Path) -> None:
    shape = Shape(hidden_size=32, intermediate_size=64, num_hidden_layers=1, head_dim=16)
    one = Stage("one", 10**9, 256, 1000, 0.01, 0.01, 1, pool_size=64)
    train([one, replace(one, seed=2)], tmp_path, shape, is_compiled=False, limit_s=4)
    progress = json.loads((tmp_path / "progress.json").read_text())
    assert progress["stage"] == 2
    assert 2 <= progress["steps"] < 10_000
    assert (tmp_path / "export" / "model.safetensors").exists()


def test_a_deeper_model_starts_with_what_the_smaller_one_can(tmp_path: Path) -> None:
    shape = Shape(hidden_size=32, intermediate_size=64, num_hidden_layers=2, head_dim=16)
    stage = Stage("one", 2000, 256, 1000, 0.01, 0.01, 1, pool_size=64)
    train([stage], tmp_path, shape, is_compiled=False)
    networks = []
    for num_layers in (2, 3):
        trainer = Trainer(replace(shape, num_hidden_layers=num_layers), is_compiled=False)
        trainer.start_from(tmp_path / "export")
        networks.append(trainer.network.float())
    assert len(networks[1].blocks) == 3
    ids = torch.arange(40)[None]
    with torch.no_grad():
        torch.testing.assert_close(networks[1](ids), networks[0](ids), rtol=1e-5, atol=1e-6)
