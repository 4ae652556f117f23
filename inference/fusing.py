"""Puts our kernels in the place of a loaded model's small operations, where they compute the same.

Norms, RoPE and gated activations are many passes over few values in torch: a third of a step of sixteen
sequences. Names say where to look; whether a kernel fits is found out by computing.
"""

import sys
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from inference.fused_layer import fuse_layers
from inference.int8 import Follower, Lead
from inference.int8_linear import Int8Linear
from inference.native import plain
from inference.native import rows as native
from inference.native.kernels import kernels

_MAX_ERROR = 1e-5  # relative, in float32
_MAX_INT8_ERROR = 1e-2  # of layers in 8 and 16 bits, whose steps a rounding may move
_SIZES = (
    1e-3,
    1.0,
    1e4,
)  # of what is computed: an epsilon shows in the small, a limit in the large
_ROPE = "apply_rotary_pos_emb"
_Rope = Callable[..., tuple[Tensor, Tensor]]
_Rows = Callable[[Tensor], Tensor]


class Operations(Protocol):
    """What is put in the place of a model's own: `native.rows`, or `gpu.rows` of the same names."""

    def is_fit(self, x: Tensor) -> bool: ...
    def rms_norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor: ...
    def silu_mul(self, x: Tensor) -> Tensor: ...
    def rotate(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor: ...


@torch.inference_mode()
def fuse(model: nn.Module, rows: Operations | None = None) -> int:
    """Fuse what can be; returns how many places were changed. By default for processors, where there are
    kernels."""
    if rows is None and kernels() is None:
        return 0
    is_native = rows is None
    rows = rows or native
    count = 0
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            count += _fuse_norm(module, rows)
        elif isinstance(getattr(module, "gate_proj", None), Lead):
            count += _fuse_gated(module, rows, device)
        elif is_native and type(module) is nn.Linear:
            count += _fuse_linear(module)
    for name in {type(module).__module__ for module in model.modules()}:
        if name.startswith("transformers.models."):
            count += _fuse_rope(sys.modules[name], rows, device)
    return count + (fuse_layers(model) if is_native else 0)


def _fuse_norm(module: nn.Module, rows: Operations) -> bool:
    weight = getattr(module, "weight", None)
    epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if not isinstance(weight, nn.Parameter) or weight.dim() != 1 or not isinstance(epsilon, float):
        return False
    original: _Rows = module.forward

    def norm(x: Tensor) -> Tensor:
        is_fit = x.dtype == weight.dtype and x.shape[-1] == len(weight)
        if not is_fit or not rows.is_fit(x):
            return original(x)
        return rows.rms_norm(x, weight, epsilon)

    def exactly(x: Tensor) -> Tensor:
        return rows.rms_norm(x, weight.float(), epsilon)

    x = random_values(5, len(weight)).to(weight.device)
    if not rows.is_fit(weight) or not is_same(original, exactly, x):
        return False
    module.forward = norm
    return True


def _fuse_linear(module: Any) -> bool:
    """In bfloat16, and only its products of some numbers of rows: see plain.c."""
    weight, bias = module.weight, module.bias
    tensors = [weight] if bias is None else [weight, bias]
    is_fit = all(
        type(t) is nn.Parameter and t.dtype == torch.bfloat16 and t.is_contiguous() for t in tensors
    )
    if not is_fit or module.in_features % 2 or not plain.is_quicker():
        return False
    original: _Rows = module.forward

    def linear(x: Tensor) -> Tensor:
        num_rows = x.numel() // x.shape[-1]
        if x.dtype != torch.bfloat16 or not plain.is_for(num_rows):
            return original(x)
        if x.shape[-1] != module.in_features:  # the original says what is wrong
            return original(x)
        return plain.linear(x, module.weight, module.bias)

    module.forward = linear
    return True


def _fuse_gated(module: nn.Module, rows: Operations, device: torch.device) -> bool:
    """down(silu(gate) * up), where gate and up are one product already."""
    lead, up, down = (getattr(module, f"{n}_proj", None) for n in ("gate", "up", "down"))
    if not (
        isinstance(lead, Lead)
        and isinstance(up, Follower)
        and isinstance(down, Int8Linear | nn.Linear)
    ):
        return False
    activation = getattr(module, "act_fn", None)
    if (
        len(lead.sizes) != 2
        or not activation
        or not is_same(activation, silu, random_values(5, 64))
    ):
        return False
    original: _Rows = module.forward

    def gated(x: Tensor) -> Tensor:
        if not rows.is_fit(x):
            return original(x)
        result: Tensor = down(rows.silu_mul(lead.joined(x)))
        return result

    x, limit = random_values(5, lead.in_features).to(device), _MAX_INT8_ERROR
    if isinstance(down, nn.Linear):
        x = x.to(down.weight)
        limit = _MAX_ERROR if x.dtype.itemsize > 2 else limit
    if not is_same(original, gated, x, limit):
        return False
    module.forward = gated
    return True


def _fuse_rope(modeling: ModuleType, rows: Operations, device: torch.device) -> bool:
    """The function is of a whole file of models, and what does not fit goes to the original."""
    original: _Rope | None = getattr(modeling, _ROPE, None)
    if original is None or hasattr(original, "is_fused"):
        return False
    fused = _fused_rope(original, rows)
    sizes = ((1, 4, 3, 32), (1, 2, 3, 32), (1, 3, 32), (1, 3, 32))
    query, key, *angles = (random_values(*s, seed=seed).to(device) for seed, s in enumerate(sizes))
    try:
        pairs = zip(original(query, key, *angles), fused(query, key, *angles), strict=True)
        if not all(_error(found, expected) <= _MAX_ERROR for expected, found in pairs):
            return False
    except Exception:  # of a function that wants something else
        return False
    setattr(modeling, _ROPE, fused)
    return True


def _fused_rope(original: _Rope, rows: Operations) -> _Rope:
    @wraps(original)
    def rope(
        q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        if args or kwargs or not (rows.is_fit(q) and _can_rotate(q, k, cos, sin)):
            return original(q, k, cos, sin, *args, **kwargs)
        cos, sin = cos.contiguous(), sin.contiguous()
        return rows.rotate(q, cos, sin), rows.rotate(k, cos, sin)

    rope.is_fused = True  # type: ignore[attr-defined]
    return rope


def _can_rotate(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> bool:
    shape = (1, q.shape[-2], q.shape[-1])
    return (
        q.dtype == k.dtype == cos.dtype == sin.dtype
        and q.dim() == k.dim() == 4
        and q.shape[0] == k.shape[0] == 1
        and q.shape[2:] == k.shape[2:]
        and cos.shape == sin.shape == shape
        and q.stride(-1) == k.stride(-1) == 1
        and q.shape[-1] % 2 == 0
    )


def is_same(
    original: _Rows,
    fused: _Rows,
    x: Tensor,
    max_error: float = _MAX_ERROR,
) -> bool:
    try:
        return all(_error(fused(x * size), original(x * size)) <= max_error for size in _SIZES)
    except Exception:  # of a module that wants something else than its name says
        return False


def _error(found: Tensor, expected: Tensor) -> float:
    if found.shape != expected.shape:
        return float("inf")
    error = (found - expected).norm() / expected.norm().clamp_min(1e-30)
    return float(error.nan_to_num(torch.inf))


def random_values(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
