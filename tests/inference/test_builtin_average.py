"""The mean of two models is a model like them."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from inference.builtin.average import average


def test_each_weight_is_the_mean_of_both_and_the_rest_is_the_seconds(tmp_path: Path) -> None:
    for name, value in (("first", 1.0), ("second", 4.0)):
        (tmp_path / name).mkdir()
        weights = {"a": torch.full((2, 3), value).bfloat16(), "b": torch.full((4,), -value)}
        save_file(weights, tmp_path / name / "model.safetensors")
        (tmp_path / name / "config.json").write_text(f'{{"name": "{name}"}}')
    average(tmp_path / "first", tmp_path / "second", tmp_path / "mean")
    made = load_file(tmp_path / "mean" / "model.safetensors")
    assert {n: (str(w.dtype), w.unique().tolist()) for n, w in made.items()} == {
        "a": ("torch.bfloat16", [2.5]),
        "b": ("torch.float32", [-2.5]),
    }
    assert (tmp_path / "mean" / "config.json").read_text() == '{"name": "second"}'
