"""How the experts of a mixture are multiplied."""

from contextlib import suppress
from typing import Any

from torch import nn

_ALIGNED_BYTES = 16  # rows of torch's grouped_mm


def set_experts_implementation(model: nn.Module) -> None:
    """Let a transformers model multiply its experts in the way that suits the processor.

    Set by us, as transformers' default may change. "grouped_mm" sorts a step's rows by expert and
    multiplies all in one call, but only where rows are aligned; "eager" is a loop over the experts that
    are asked. On CPU neither is clearly faster, whatever the number of rows, and
    "batched_mm", which copies the weights for every row, takes several times as long.
    """
    experts = [p for name, p in model.named_parameters() if ".experts." in name and p.dim() == 3]
    if not experts:
        return
    row_bytes = [size * p.itemsize for p in experts for size in p.shape[1:]]
    is_aligned = all(num_bytes % _ALIGNED_BYTES == 0 for num_bytes in row_bytes)
    transformers_model: Any = model
    # Some model files (llama4, jetmoe, longcat_flash) know one way only.
    with suppress(ValueError):
        transformers_model.set_experts_implementation("grouped_mm" if is_aligned else "eager")
