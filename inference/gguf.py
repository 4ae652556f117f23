"""GGUF files: translated once into a directory that is a model like any other.

transformers' own loader unpacks the weights and rebuilds config and tokenizer; what it makes is held to
the checks of every other model before it takes its place. Weights come out as bfloat16 (float32 if the
file holds only that); fewer bits are chosen when the model is loaded, as for any model.
"""

import json
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference import memory
from inference.errors import ModelRefused, ModelTooLarge
from inference.kinds import read_kind

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_MAGIC = b"GGUF"
_ALL_FLOAT32 = 0  # general.file_type
_PACKAGES = ("gguf", "accelerate")
_OVERHEAD = 1.3  # the largest matrix is there three times for a moment


def translate(file: Path, target: Path) -> None:
    """Make the directory `target` out of a GGUF file, whole or not at all.

    Raises ModelRefused (packages, the file, its architecture, no chat template) or ModelTooLarge.
    """
    _check_packages()
    dtype_name = _check_file(file)
    if target.exists():
        raise ModelRefused(f"There is a {target} already.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".gguf-", dir=target.parent) as folder:
        made = Path(folder) / "model"
        made.mkdir()
        try:
            _write_tokenizer(file, made)
            _write_model(file, made, dtype_name)
        except (ValueError, KeyError, OSError, RuntimeError, TypeError, IndexError) as error:
            raise ModelRefused(f"transformers does not load {file.name}: {error}") from error
        read_kind(made)
        shutil.move(made, target)


def _check_packages() -> None:
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise ModelRefused(
            f"To read GGUF files, {' and '.join(missing)} must be installed:"
            f" pip install {' '.join(missing)}"
        )


def _check_file(file: Path) -> str:
    """The type that its weights are to have. Raises ModelRefused, ModelTooLarge."""
    from gguf import GGUFReader

    try:
        with file.open("rb") as stream:
            if stream.read(4) != _MAGIC:
                raise ModelRefused(f"{file} is no GGUF file.")
        reader = GGUFReader(file)
        num_parameters = sum(int(tensor.n_elements) for tensor in reader.tensors)
        file_type = reader.get_field("general.file_type")
    except (OSError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ModelRefused(f"{file} is no sound GGUF file (is it cut short?): {error}") from error
    is_exact = file_type is not None and file_type.contents() == _ALL_FLOAT32
    needed = int(num_parameters * (4 if is_exact else 2) * _OVERHEAD)
    if needed > (available := memory.available_bytes()):
        raise ModelTooLarge(file.name, needed_bytes=needed, available_bytes=available)
    return "float32" if is_exact else "bfloat16"


def _write_tokenizer(file: Path, made: Path) -> None:
    """First: it is quick, and without a chat template nobody can chat with the model."""
    from transformers import AutoTokenizer

    from inference.tokenizer import ChatTokenizer

    AutoTokenizer.from_pretrained(
        file.parent, gguf_file=file.name, local_files_only=True
    ).save_pretrained(made)
    ChatTokenizer.load(made)


def _write_model(file: Path, made: Path, dtype_name: str) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, GgufConfig

    from inference.loader import check_complete
    from inference.selftest import check_architecture

    here: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    config: PretrainedConfig = AutoConfig.from_pretrained(file.parent, **here)
    check_architecture(config)
    auto_class: Any = AutoModelForCausalLM
    model, report = auto_class.from_pretrained(
        file.parent,
        dtype=getattr(torch, dtype_name),
        quantization_config=GgufConfig(dequantize=True),
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # they come back in the report, by their names
        **here,
    )
    check_complete(model, report)
    # What is saved is no GGUF any more, and has no quantizer.
    model.hf_quantizer = None
    model.save_pretrained(made)
    settings = json.loads((made / "config.json").read_text())
    settings.pop("quantization_config", None)
    (made / "config.json").write_text(json.dumps(settings, indent=2))
