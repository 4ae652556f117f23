"""The tests of the browser's modules that need no browser; they run by themselves with `npm test`."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_modules_of_the_browser() -> None:
    done = subprocess.run(
        ["node", "--test", *sorted(str(path) for path in HERE.glob("*.test.js"))],
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
