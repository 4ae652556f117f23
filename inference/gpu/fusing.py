"""Fewer and larger launches for a model on a GPU: projections of one input as one product, and norms,
RoPE and gates as one launch each.

A step of few tokens is bound by the number of its launches; products of small matrices leave a GPU idle
besides. Sources: vLLM's transformers backend (#45284, #47187), whose gap to native models this closed.
"""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from inference.fusing import fuse
from inference.int8 import join_siblings
from inference.out_of_memory import is_fault
from inference.paged_kv import PagedKV
from inference.selftest import MAX_RELATIVE_ERROR, packed_error
from inference.small_config import shrink

logger = logging.getLogger(__name__)
_NUM_BLOCKS, _CONTEXT_TOKENS = 64, 512  # of the small copy's cache
_MAX_ERROR = 1e-5  # relative, in float32
_MAX_ROUNDING = 1e-2  # in 16 bits


def fuse_checked(
    name: str, model: nn.Module, config: PretrainedConfig, kept_as: torch.dtype | None = None
) -> int:
    """`fuse_on_device`, if a small copy of the architecture computes the same when it is fused: model
    files may look into a layer that is another then. Layers are called as one where the copy's are, for
    in float32 and with wide weights it shows more than they do."""
    device = next(model.parameters()).device
    copies: list[nn.Module] = []

    def change(small: nn.Module) -> None:
        copies.append(small)
        fuse_on_device("a small copy", small)

    try:
        error = packed_error(
            shrink(config),
            PagedKV(_NUM_BLOCKS, _CONTEXT_TOKENS),
            device,
            change=change,
        )
        problem = "" if error <= MAX_RELATIVE_ERROR else f"relative error {error:.1e}"
    except Exception as failure:
        if is_fault(failure):
            raise
        problem = f"{type(failure).__name__}: {failure}"
    if problem:
        logger.warning("%s is not fused, for a small copy of it fails: %s", name, problem)
        return 0
    from inference.gpu.layer import has_fused_all

    return fuse_on_device(name, model, has_layers=all(map(has_fused_all, copies)), kept_as=kept_as)


def fuse_on_device(
    name: str, model: nn.Module, *, has_layers: bool = True, kept_as: torch.dtype | None = None
) -> int:
    """Fuse what computes the same then, whole layers only with `has_layers`; returns how many places
    were changed."""
    from inference.gpu import layer, rows  # fails where there is no triton

    try:
        with torch.inference_mode():
            num_joined = sum(join_siblings(module, _joined) for module in list(model.modules()))
        num_fused = fuse(model, rows)
        num_fused += layer.fuse_layers(model, kept_as) if has_layers else 0
    except Exception as error:
        if is_fault(error):
            raise
        # Some layers are fused by now, each of which was found right.
        logger.warning("%s is not fused any further: %s: %s", name, type(error).__name__, error)
        return 0
    logger.info("%s: %d products joined, %d places fused", name, num_joined, num_fused)
    return num_joined + num_fused


def _joined(linears: Sequence[nn.Linear], dtype: torch.dtype | None) -> nn.Linear:
    """One layer for several of one input. Raises ValueError where it computes something else."""
    weight = torch.cat([linear.weight for linear in linears])
    with torch.device("meta"):
        joined = nn.Linear(weight.shape[1], weight.shape[0], bias=any(_bias(x) for x in linears))
    joined.weight = nn.Parameter(weight, requires_grad=False)
    if joined.bias is not None:
        biases: list[Tensor] = [
            weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
            for linear in linears
        ]
        joined.bias = nn.Parameter(torch.cat(biases), requires_grad=False)
    x = torch.randn(5, weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight)
    expected = torch.cat([linear(x) for linear in linears], -1)
    error = _relative(joined(x), expected)
    if not error <= (_MAX_ROUNDING if weight.dtype.itemsize < 4 else _MAX_ERROR):
        raise ValueError(f"a joined product differs by {error:.1e}")
    return joined


def _bias(linear: nn.Linear) -> bool:
    return linear.bias is not None


def _relative(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).float().norm() / expected.float().norm())
