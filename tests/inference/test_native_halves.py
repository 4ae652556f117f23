"""The kernels as a processor without AVX-512 builds them: the same tests, with the same sources."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inference.native import build

_FEATURES = ("avx512f", "amx-tile", "amx-int8", "amx-bf16", "avxvnni")
# Not to be quick, and compiled in half the time: what differs is written in intrinsics.
FLAGS = ("-O1", *build._FLAGS[1:], *(f"-mno-{name}" for name in _FEATURES))
ABOUT_THE_BUILD = ("built", "compiler", "folder")  # the same with any flags
PROBE = "__AVX512F__"


def _defines(*flags: str) -> str:
    words = ["gcc", *flags, "-dM", "-E", "-x", "c", os.devnull]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.mark.timeout(600)
def test_what_avx2_computes_is_right(tmp_path: Path) -> None:
    if PROBE not in _defines("-march=native"):
        pytest.skip("test_native.py has done so: this processor has no AVX-512")
    assert PROBE not in _defines("-march=native", *FLAGS[-len(_FEATURES) :])
    plugin = tmp_path / "narrow_kernels.py"
    plugin.write_text(f"from inference.native import build\nbuild._FLAGS = {FLAGS!r}\n")
    tests = [f"tests/inference/test_native{name}.py" for name in ("", "_drawing")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    (tmp_path / "cache").mkdir(mode=0o700)
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "narrow_kernels",
            "-p",
            "no:cacheprovider",
            "-k",
            f"not ({' or '.join(ABOUT_THE_BUILD)})",
            *tests,
        ],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout
    assert list((tmp_path / "cache").glob("vitrine/kernels-*.so")), "it was built as it says"
