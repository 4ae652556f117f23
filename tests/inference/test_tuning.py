"""An adapter that is tuned here is served, and its vectors tell apart what they were tuned for."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from inference import EngineConfig
from inference.adapter_config import CONFIG_FILE
from inference.adapter_files import WEIGHTS_FILE
from inference.adapter_loader import Base, load_adapters
from inference.config import Adapter
from inference.encoder_layout import read_encoder_layout
from inference.encoder_loader import load_encoder
from inference.encoder_tokenizer import EncoderTokenizer
from inference.tuning import tune
from tests.inference.conftest import engine_config
from tests.inference.tiny_models import make_encoder

WORDS = ("quick", "brown", "over", "lazy", "the", "jumps")


def sentence(rng: random.Random, animal: str) -> str:
    words = [*rng.choices(WORDS, k=6), animal]
    rng.shuffle(words)
    return " ".join(words)


def examples(path: Path, rng: random.Random) -> Path:
    """Of two pieces each, one of which has a fox or a dog. What the second label says counts not."""
    rows = []
    for _ in range(64):
        is_fox = rng.random() < 0.5
        pieces = [[sentence(rng, "fox" if is_fox else "dog"), 7], [sentence(rng, ""), 6]]
        labels, counts = [float(is_fox), float(rng.random() < 0.5)], [1.0, 0.0]
        rows.append(json.dumps({"pieces": pieces, "labels": labels, "counts": counts}))
    path.write_text("\n".join(rows))
    return path


def spread(foxes: Tensor, dogs: Tensor) -> float:
    """How far the two kinds are apart, in times of how far each kind's own vectors are."""
    within = (foxes - foxes.mean(0)).norm(dim=1).mean() + (dogs - dogs.mean(0)).norm(dim=1).mean()
    return float((foxes.mean(0) - dogs.mean(0)).norm() / within)


def test_a_tuned_adapter_tells_apart_what_its_base_does_not(tmp_path: Path) -> None:
    rng = random.Random(1)
    base = make_encoder(tmp_path / "base", pooling="mean")
    out = tmp_path / "adapter"
    tune(base, examples(tmp_path / "examples.jsonl", rng), out, num_epochs=100, rate=5e-3)
    encoder, _ = load_encoder("base", base, lambda *_: None, torch.float32)
    config: EngineConfig = replace(engine_config(base), adapters=(Adapter("tuned", "base", out),))
    encoder.adapters = load_adapters(
        Base.of_encoder("base", encoder), config, lambda *_: None, torch.float32
    )
    assert not encoder.adapters.infos["tuned"].problem
    tokenizer = EncoderTokenizer.load(base, read_encoder_layout(base))

    def vectors(texts: Sequence[str], adapter: str) -> Tensor:
        inputs = tokenizer.encode(list(texts), first_index=0, prompt="", truncate=True)
        return encoder.encode(inputs, adapter=adapter)

    unseen = {animal: [sentence(rng, animal) for _ in range(40)] for animal in ("fox", "dog")}
    before, after = (
        spread(vectors(unseen["fox"], name), vectors(unseen["dog"], name)) for name in ("", "tuned")
    )
    assert after > 2 * before


def test_whoever_goes_on_changes_upper_layers_only_and_keeps_the_scale(tmp_path: Path) -> None:
    base = make_encoder(tmp_path / "base", pooling="mean")
    learnt = examples(tmp_path / "examples.jsonl", random.Random(1))
    first, second = tmp_path / "first", tmp_path / "second"
    tune(base, learnt, first, num_epochs=1)
    tune(base, learnt, second, num_epochs=2, start=first, first_layer=1)
    before, after = (load_file(one / WEIGHTS_FILE) for one in (first, second))
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if ".layer.0." not in name}
    assert (first / CONFIG_FILE).read_text() == (second / CONFIG_FILE).read_text()
