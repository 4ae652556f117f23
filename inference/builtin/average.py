"""The mean of two models' weights, from before and after a training that moved them little.

What a later stage had forgotten comes back, and what it had learnt stays: both lie in the same valley.
Wortsman et al. 2022, "Model soups".
"""

import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file


def average(first: Path, second: Path, folder: Path) -> None:
    """Write the second model to `folder`, with the mean of both models' weights."""
    shutil.copytree(second, folder, dirs_exist_ok=True)
    ours, theirs = (load_file(one / "model.safetensors") for one in (first, second))
    mean = {n: ((ours[n].float() + theirs[n].float()) / 2).to(ours[n].dtype) for n in ours}
    save_file(mean, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
