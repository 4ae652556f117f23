"""Of the batches of a training the hardest are learnt from, and the others cost no gradient."""

import random

import torch

from inference.builtin.hardest import Hardest
from inference.builtin.network import Shape
from inference.builtin.packing import Batch, Row
from inference.builtin.train import Trainer


def test_the_share_of_the_latest_with_the_most_loss_is_kept() -> None:
    rng, hardest = random.Random(5), Hardest(0.25, window=64)
    losses = [rng.random() * (1 if number < 1000 else 0.01) for number in range(2000)]
    kept = [hardest.keeps(loss) for loss in losses]
    for half in (slice(100, 1000), slice(1100, 2000)):  # also when all have become easy
        taken = [loss for loss, is_kept in zip(losses[half], kept[half], strict=True) if is_kept]
        left = [loss for loss, is_kept in zip(losses[half], kept[half], strict=True) if not is_kept]
        assert 0.2 < len(taken) / 900 < 0.3
        assert sum(taken) / len(taken) > 1.7 * sum(left) / len(left)


def test_a_batch_that_is_left_out_changes_no_gradient() -> None:
    shape = Shape(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=1)
    trainer = Trainer(shape, is_compiled=False)
    batch = Batch((Row((1, 2, 3), (0, 1, 1)),), 4)
    hardest = Hardest(0.5)
    hardest.recent.extend([1e9] * 64)
    loss, num_targets, is_learnt = trainer.accumulate(batch, hardest)
    assert not is_learnt
    assert num_targets == 2
    assert not any(grad.any() for grad in trainer.grads.values())
    again, _, is_learnt = trainer.accumulate(batch)
    assert is_learnt
    torch.testing.assert_close(again, loss)
    assert trainer.grads["embedding"].any()
