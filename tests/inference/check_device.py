"""What a device says beside the processor: a GPU's path, where one is at hand. A JSON line a check.

`python -m tests.inference.check_device cuda [NAME …]`, in a process of its own: kernels are compiled
there (TRITON_INTERPRET=0). Small models, in float32, say to the last token what they say on the
processor, also of images; and those of few bits load without a warning and answer. Ends with 1 where a
check fails.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from inference import attention, fp8, whole_linear
from inference.engine_loop import EngineLoop
from inference.gpu.overlap import OverlappedLoop
from inference.tokenizer import ChatTokenizer
from tests.inference import seeing
from tests.inference.loops import PROMPTS, answers, make_loop, request
from tests.inference.tiny_models import make_model
from tests.inference.tiny_vision import FAMILIES, make_seeing_model

_FEW_BITS = ("fp8", "int8", "int4")


def main(device: str, *names: str) -> int:
    """Those checks whose names begin so; all, without any."""
    torch.backends.cudnn.allow_tf32 = False  # of a tower's convolution: tokens are to be the same
    with TemporaryDirectory(prefix="vitrine-check-") as folder:
        checks = _checks(torch.device(device), Path(folder))
        chosen = {n: c for n, c in checks.items() if not names or n.startswith(names)}
        return max(_is_wrong(name, check) for name, check in chosen.items())


def _checks(device: torch.device, folder: Path) -> dict[str, Callable[[], str]]:
    """By name; what each returns is what is wrong."""
    checks: dict[str, Callable[[], str]] = {
        f"products of int{bits}": partial(whole_linear.problem_on, device, bits) for bits in (4, 8)
    }
    checks["products of fp8"] = partial(fp8.problem_on, device)
    checks |= {f"sees: {family}": partial(_sees, device, folder, family) for family in FAMILIES}
    checks["writes"] = partial(_writes, device, folder)
    checks |= {
        f"answers in {dtype}": partial(_answers, device, folder, dtype) for dtype in _FEW_BITS
    }
    checks["answers over fp8"] = partial(_answers, device, folder, "bfloat16", kv_dtype="fp8")
    return checks


def _sees(device: torch.device, folder: Path, family: str) -> str:
    path = make_seeing_model(folder / family, family)
    one = seeing.request(ChatTokenizer.load(path), seeing.TALK)
    return _difference(*(answers(_loop(path, at), one) for at in ("cpu", device.type)))


def _writes(device: torch.device, folder: Path) -> str:
    """Several at once, greedily and by chance."""
    path = make_model(folder / "writing")
    asked = [
        request(f"{number}", prompt, temperature=number % 2 * 0.8, seed=number)
        for number, prompt in enumerate(PROMPTS)
    ]
    return _difference(*(answers(_loop(path, at), *asked) for at in ("cpu", device.type)))


def _loop(path: Path, device: str, **options: Any) -> EngineLoop:
    attention.use_kernels(None)  # those of the loop before
    # Its cache is what is given then, and not all of the device: others check beside it.
    has_own_gpus = device != "cpu"
    return make_loop(path, device=device, has_own_gpus=has_own_gpus, max_num_sequences=4, **options)


def _difference(expected: list[list[int]], found: list[list[int]]) -> str:
    return "" if found == expected else f"{found}, and on the processor {expected}"


def _answers(device: torch.device, folder: Path, dtype: str, **options: Any) -> str:
    path = folder / "answering"
    path = path if path.exists() else make_model(path)
    loop = _loop(path, device.type, dtype=dtype, **options)
    asked = [request(f"{number}", prompt) for number, prompt in enumerate(PROMPTS)]
    if {len(one) for one in answers(loop, *asked)} != {20}:
        return "answers that end too early"
    has_graphs = isinstance(loop, OverlappedLoop) and len(loop.decode.graphs) > 0
    return "" if has_graphs or device.type == "cpu" else "there are no graphs"


def _is_wrong(name: str, check: Callable[[], str]) -> bool:
    warned = _Warned()
    logging.getLogger("inference").addHandler(warned)
    begin_s = time.perf_counter()
    try:
        problem = check()
    except Exception as error:
        traceback.print_exc()
        problem = f"{type(error).__name__}: {error}"
    logging.getLogger("inference").removeHandler(warned)
    took_s = round(time.perf_counter() - begin_s, 1)
    row = {"check": name, "problem": problem, "warnings": warned.told, "took_s": took_s}
    print(json.dumps(row), flush=True)
    return bool(problem or warned.told)


class _Warned(logging.Handler):
    """What was left out, and why."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
