"""GGUF files become models: the same tokens and logits, or a sentence that says why not."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from inference import ChatTokenizer, ModelRefused
from inference import gguf as own
from inference.cli.arguments import parse
from inference.weights import read_config
from tests.inference.gguf_files import write_gguf
from tests.inference.tiny_models import make_model

pytest.importorskip("gguf")
pytest.importorskip("accelerate")

MESSAGES = [{"role": "user", "content": "Grüße, 世界! 12 foxes\n <|im_end|> jump 👩‍👩‍👧"}]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("gguf") / "source", "qwen2")


@pytest.fixture
def file(source: Path, tmp_path: Path) -> Path:
    return write_gguf(source, tmp_path / "Tiny-Q8_0.gguf")


@pytest.mark.parametrize(
    ("quantization", "most_error", "dtype"),
    [("F32", 1e-6, "float32"), ("Q8_0", 0.05, "bfloat16"), ("Q4_0", 0.5, "bfloat16")],
)
def test_what_comes_out_says_the_same(
    source: Path, tmp_path: Path, quantization: str, most_error: float, dtype: str
) -> None:
    own.translate(write_gguf(source, tmp_path / "a.gguf", quantization), tmp_path / "made")
    expected_ids = ChatTokenizer.load(source).encode_chat(MESSAGES)
    assert ChatTokenizer.load(tmp_path / "made").encode_chat(MESSAGES) == expected_ids
    assert read_config(tmp_path / "made")["dtype"] == dtype
    with torch.inference_mode():
        expected, found = (
            AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)(
                torch.tensor([expected_ids])
            ).logits
            for path in (source, tmp_path / "made")
        )
    assert (found - expected).norm() / expected.norm() < most_error


def test_an_imported_model_chats(file: Path, tmp_path: Path) -> None:
    def run(*words: str, typed: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "inference", *words, "--models-dir", str(tmp_path / "models")],
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("import", str(file)) == "gguf/Tiny-Q8_0\n"
    assert "gguf/Tiny-Q8_0" in run("models")
    assert run("chat", "gguf/Tiny-Q8_0", "--max-tokens", "8", "--seed", "1", typed="Who?")


def _cut(source: Path, file: Path) -> None:
    content = write_gguf(source, file).read_bytes()
    file.write_bytes(content[: len(content) // 2])


def _no_template(source: Path, file: Path) -> None:
    write_gguf(source, file, template=None)


def _incomplete(source: Path, file: Path) -> None:
    write_gguf(source, file, left_out="blk.1.attn_q.weight")


def _unknown(source: Path, file: Path) -> None:
    write_gguf(source, file, architecture="zork")


def _refused(source: Path, file: Path) -> None:
    write_gguf(source, file, architecture="bloom")


def _other_bytes(source: Path, file: Path) -> None:
    file.write_bytes(b"GGUF" + b"\xff" * 200)


def _no_gguf(source: Path, file: Path) -> None:
    file.write_bytes((source / "model.safetensors").read_bytes())


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_cut, "cut short"),
        (_no_template, "no chat template"),
        (_incomplete, "lack model.layers.1.self_attn.q_proj.weight"),
        (_unknown, "zork"),
        (_refused, "."),
        (_other_bytes, "no sound GGUF file"),
        (_no_gguf, "no GGUF file"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_file_that_is_no_good_is_refused_and_leaves_nothing(
    source: Path, tmp_path: Path, spoil: Callable[[Path, Path], None], sentence: str
) -> None:
    file, models_dir = tmp_path / "x.gguf", tmp_path / "models"
    spoil(source, file)
    with pytest.raises(ModelRefused) as caught:
        own.translate(file, models_dir / "gguf" / "x")
    assert sentence in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert not [path for path in models_dir.rglob("*") if path.is_file()]


def test_what_is_there_stays(file: Path, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    with pytest.raises(ModelRefused, match="already"):
        own.translate(file, tmp_path / "made")


def test_what_is_missing_is_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_PACKAGES", ("gguf", "no_such_package"))
    with pytest.raises(ModelRefused, match=r"pip install no_such_package$"):
        own.translate(file, tmp_path / "made")


def test_the_file_itself_is_no_model_and_that_is_said(file: Path) -> None:
    for read in (read_config, ChatTokenizer.load):
        with pytest.raises(ModelRefused, match="python -m inference import"):
            read(file)


@pytest.mark.parametrize("name", ["../x", "x", "a/b/c", "/etc/passwd"])
def test_a_name_stays_below_the_models(file: Path, tmp_path: Path, name: str) -> None:
    words = ["import", str(file), name, "--models-dir", str(tmp_path / "models")]
    arguments = parse(words)
    with pytest.raises(Exception, match="no model name"):
        arguments.run(arguments)
