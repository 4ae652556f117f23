"""What a text gives is transformers' own result, and depends on no neighbour of its batch."""

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModel, AutoModelForSequenceClassification

from inference import ModelRefused, int8
from inference.encode_messages import EncoderInput
from inference.encoder_layout import POOLING_MODES
from inference.encoder_loader import load_encoder
from inference.encoder_model import PACKED_TOKENS, EncoderModel
from inference.encoder_selftest import check_batches
from tests.inference.tiny_models import make_encoder

LENGTHS = (2, 40, 7, 23, 40, 3)
INPUTS = [
    EncoderInput(array("i", ((7 * i + 13 * j) % 250 + 3 for j in range(length))))
    for i, length in enumerate(LENGTHS)
]
RELEVANT = {"labels": ("relevant",)}


def _load(path: Path) -> EncoderModel:
    encoder, _ = load_encoder("tiny", path, lambda phase, fraction: None, torch.float32)
    return encoder


def _alone(encoder: EncoderModel, inputs: Sequence[EncoderInput] = INPUTS) -> Tensor:
    return torch.cat([encoder.encode([each]) for each in inputs])


def _assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [
        ("bert", {"pooling": "mean"}),
        ("bert", RELEVANT),
        ("bert", {"labels": ("good", "bad", "ugly")}),
        ("roberta", {"pooling": "cls"}),  # counts positions by what is padding
        ("roberta", RELEVANT),
        ("xlm-roberta", {}),
        ("distilbert", {"dim": 64, "n_heads": 4, "hidden_dim": 128, "n_layers": 3}),
        ("mpnet", {}),  # a bias by relative positions
        ("modernbert", {"global_attn_every_n_layers": 2, "local_attention": 16}),
        ("electra", {"embedding_size": 64}),
        ("deberta-v2", {}),
        ("qwen3", {"pooling": "lasttoken"}),
        ("qwen3", RELEVANT),
        ("qwen3", {**RELEVANT, "pad_token_id": None}),  # cannot tell where a text ends
        ("gemma3_text", {"pooling": "mean", "use_bidirectional_attention": True}),
        ("llama", {}),
    ],
)
def test_batched_is_one_by_one(model_type: str, settings: dict[str, Any], tmp_path: Path) -> None:
    encoder = _load(make_encoder(tmp_path / "model", model_type, **settings))
    check_batches(encoder)
    alone = _alone(encoder)
    assert alone.std(0).max() > 1e-3, "the inputs are told apart"
    if encoder.can_batch:
        _assert_close(encoder.encode(INPUTS), alone)
        _assert_close(encoder.encode(INPUTS[::-1]).flip(0), alone)
    else:
        assert settings["pad_token_id"] is None


def test_little_work_has_one_thread_and_much_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = _load(make_encoder(tmp_path / "model"))
    seen: list[int] = []
    hook = encoder.model.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        alone = encoder.encode(INPUTS[:1])
        monkeypatch.setattr("inference.encoder_model._LEAST_WORK", 1)
        _assert_close(encoder.encode(INPUTS[:1]), alone)
        assert seen == [1, 2]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
        hook.remove()


@pytest.mark.parametrize("seed", range(3))
def test_short_inputs_share_rows_and_see_only_themselves(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    encoder = _load(make_encoder(tmp_path / "model", pooling="mean"))
    widths: list[int] = []
    encoder.model.register_forward_pre_hook(
        lambda _, __, given: widths.append(given["input_ids"].numel()), with_kwargs=True
    )
    inputs = [
        EncoderInput(array("i", random.choices(range(3, 250), k=random.randint(1, PACKED_TOKENS))))
        for _ in range(random.randint(2, 30))
    ]
    assert encoder.can_pack
    together = encoder.encode(inputs)
    (computed,) = widths
    assert computed < 1.5 * sum(map(len, inputs)) + PACKED_TOKENS
    _assert_close(together, _alone(encoder, inputs))


@pytest.mark.parametrize("mode", POOLING_MODES)
def test_every_pooling_is_by_its_definition(mode: str, tmp_path: Path) -> None:
    path = make_encoder(tmp_path / "model", pooling=mode, is_normalized=False)
    model = AutoModel.from_pretrained(path).eval()
    found = _load(path).encode(INPUTS)
    for row, each in zip(found, INPUTS, strict=True):
        with torch.inference_mode():
            hidden = model(input_ids=torch.tensor([each.ids])).last_hidden_state[0]
        number = torch.arange(1, len(hidden) + 1).unsqueeze(1)
        expected = {
            "cls": hidden[0],
            "lasttoken": hidden[-1],
            "max": hidden.max(0).values,
            "mean": hidden.mean(0),
            "mean_sqrt_len_tokens": hidden.sum(0) / len(hidden) ** 0.5,
            "weightedmean": (hidden * number).sum(0) / number.sum(),
        }
        _assert_close(row, expected[mode])


def test_vectors_are_of_length_one_where_the_files_say_so(tmp_path: Path) -> None:
    for is_normalized in (True, False):
        path = make_encoder(
            tmp_path / str(is_normalized), pooling="mean", is_normalized=is_normalized
        )
        lengths = _load(path).encode(INPUTS).norm(dim=-1)
        assert torch.allclose(lengths, torch.ones(len(INPUTS)), atol=1e-5) is is_normalized


def test_a_decoder_without_modules_is_read_at_its_last_token(tmp_path: Path) -> None:
    path = make_encoder(tmp_path / "model", "qwen3")
    model = AutoModel.from_pretrained(path).eval()
    with torch.inference_mode():
        hidden = model(input_ids=torch.tensor([INPUTS[1].ids])).last_hidden_state[0]
    _assert_close(_load(path).encode(INPUTS)[1], hidden[-1])


@pytest.mark.parametrize(
    ("problem_type", "squashed"),
    [
        (None, lambda logits: logits.softmax(-1)),
        ("single_label_classification", lambda logits: logits.softmax(-1)),
        ("multi_label_classification", torch.sigmoid),
    ],
)
def test_scores_of_labels_follow_the_problem(
    problem_type: str | None, squashed: Any, tmp_path: Path
) -> None:
    labels = ("good", "bad", "ugly")
    path = make_encoder(tmp_path / "model", labels=labels, problem_type=problem_type)
    model = AutoModelForSequenceClassification.from_pretrained(path).eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([INPUTS[1].ids])).logits
    _assert_close(_load(path).encode(INPUTS)[1:2], squashed(logits))


def test_the_second_text_of_a_pair_has_its_own_type(tmp_path: Path) -> None:
    path = make_encoder(tmp_path / "model", **RELEVANT)
    model = AutoModelForSequenceClassification.from_pretrained(path).eval()
    ids = INPUTS[1].ids
    types = bytes([0] * 10 + [1] * 30)
    with torch.inference_mode():
        logits = model(
            input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([list(types)])
        ).logits
    encoder = _load(path)
    as_pair, as_text = encoder.encode([EncoderInput(ids, types), EncoderInput(ids)])
    _assert_close(as_pair, logits[0])
    assert not torch.allclose(as_pair, as_text, atol=1e-3)


def _add_dense(path: Path, activation: str) -> Tensor:
    """Two numbers of the 64; returns their weights, (2, 64)."""
    modules = json.loads((path / "modules.json").read_text())
    modules.insert(2, {"idx": 2, "name": "2", "path": "2_Dense", "type": "any.Dense"})
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "2_Dense").mkdir()
    config = {
        "in_features": 64,
        "out_features": 2,
        "bias": False,
        "activation_function": activation,
    }
    (path / "2_Dense" / "config.json").write_text(json.dumps(config))
    weight = torch.linspace(-1, 1, 128).view(2, 64)
    save_file({"linear.weight": weight}, path / "2_Dense" / "model.safetensors")
    return weight


def test_a_dense_layer_stands_behind_the_pooling(tmp_path: Path) -> None:
    path = make_encoder(tmp_path / "model", pooling="mean", is_normalized=False)
    before = _load(path)
    pooled, revision = before.encode(INPUTS), _revision(path)
    weight = _add_dense(path, "torch.nn.modules.activation.Tanh")
    encoder = _load(path)
    _assert_close(encoder.encode(INPUTS), (pooled @ weight.T).tanh())
    assert encoder.layout.dimensions == 2
    assert _revision(path) != revision


def _revision(path: Path) -> str:
    return load_encoder("tiny", path, lambda phase, fraction: None, torch.float32)[1].revision


def test_an_activation_is_never_imported_by_its_name(tmp_path: Path) -> None:
    path = make_encoder(tmp_path / "model", pooling="mean")
    _add_dense(path, "os.system")
    with pytest.raises(ModelRefused, match=r"activation os\.system, which is not supported"):
        _load(path)


def test_a_checkpoint_without_a_layer_is_refused_and_without_a_pooler_is_not(
    tmp_path: Path,
) -> None:
    path = make_encoder(tmp_path / "model")
    file = path / "model.safetensors"
    whole = load_file(file)
    expected = _load(path).encode(INPUTS)
    save_file({n: t for n, t in whole.items() if "pooler" not in n}, file, {"format": "pt"})
    _assert_close(_load(path).encode(INPUTS), expected)
    save_file({n: t for n, t in whole.items() if "layer.1.output" not in n}, file, {"format": "pt"})
    with pytest.raises(ModelRefused, match=r"they lack encoder\.layer\.1\.output"):
        _load(path)


def test_an_encoder_with_a_decoder_is_refused(tmp_path: Path) -> None:
    path = make_encoder(tmp_path / "model")
    config = {"model_type": "t5", "architectures": ["T5Model"], "d_model": 64, "vocab_size": 300}
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelRefused, match="encoder with a decoder"):
        _load(path)


class _Careless(torch.nn.Module):
    """A model that looks at its padding."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.config = model.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        return self.model(input_ids=input_ids)


def test_a_model_that_looks_at_its_padding_is_refused(tmp_path: Path) -> None:
    sound = _load(make_encoder(tmp_path / "model", pooling="mean"))
    careless = EncoderModel(_Careless(sound.model), sound.layout, modes=("mean",))
    with pytest.raises(ModelRefused, match="depend on the neighbours"):
        check_batches(careless)


@pytest.mark.parametrize(
    ("model_type", "settings"),
    [("bert", {"pooling": "mean"}), ("bert", RELEVANT), ("qwen3", {"pooling": "lasttoken"})],
)
def test_in_eight_bits_a_text_gives_nearly_the_same(
    model_type: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    path = make_encoder(tmp_path / "model", model_type, **settings)
    told: list[str] = []
    encoder, info = load_encoder(
        "tiny", path, lambda phase, _: told.append(phase), torch.float32, bits=8
    )
    if int8.sound_kind() is None:
        assert info.dtype == "float32"
        return
    assert info.dtype == "int8"
    assert "quantizing" in told
    check_batches(encoder)
    exact, found = _load(path).encode(INPUTS), encoder.encode(INPUTS)
    assert not torch.equal(found, exact)
    assert (found - exact).norm() < 0.08 * exact.norm()
    head = getattr(encoder.model, "classifier", None)
    assert head is None or type(head) is torch.nn.Linear, "what scores stays as it is"
