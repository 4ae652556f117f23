"""How a checkpoint says that its weights are quantized. Loads no torch.

AWQ, GPTQ, FP8, MXFP4 and compressed-tensors are understood; their weights become ordinary ones when they
are loaded (`dequantize`), and whole numbers again where `VITRINE_DTYPE` asks for that.
"""

from dataclasses import dataclass
from typing import Any

from inference.errors import ModelRefused

_BITS_OF_ELEMENT = 32  # of packed whole numbers
PACKED = ("qweight", "weight_packed")
"""Tensors whose elements hold several weights each, by the ends of their names."""
_MXFP4 = "_blocks"  # bytes of two values
ASIDE = (
    "qzeros",
    "g_idx",
    "scales",
    "weight_scale",
    "weight_scale_inv",
    "weight_shape",
    "weight_zero_point",
    "weight_g_idx",
    "input_scale",
    "activation_scale",
)
"""Tensors that only say what weights stand for."""
_BLOCK = (128, 128)  # of DeepSeek-V3's weights, and all that followed it


@dataclass(frozen=True, slots=True)
class Quantization:
    """`method` is transformers' quant_method; `bits` are those of a weight. `is_v2`: GPTQ's zeros are
    what they say, and not one less. `block` are the rows and columns with one scale, where there are
    blocks."""

    method: str
    bits: int
    is_v2: bool = False
    block: tuple[int, int] = _BLOCK

    def __str__(self) -> str:
        return f"{self.method}, {self.bits} bits"

    def values_per_element(self, name: str) -> int:
        """How many weights an element of a tensor holds; 0 for what only scales them."""
        end = name.rpartition(".")[2]
        if end in PACKED:
            return _BITS_OF_ELEMENT // self.bits
        if self.method == "mxfp4" and name.endswith(_MXFP4):
            return 2
        return 0 if end in ASIDE or end.endswith("_scales") else 1


def read_quantization(config: dict[str, Any]) -> Quantization | None:
    """Of a config.json; None where weights are as they are. Raises ModelRefused."""
    inner = config.get("text_config")
    given = config.get("quantization_config")
    if not given and isinstance(inner, dict):
        given = inner.get("quantization_config")
    if not given:
        return None
    try:
        return _of(given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelRefused(f"Its quantization_config cannot be read: {error}") from error


def _of(given: dict[str, Any]) -> Quantization:
    method = str(given.get("quant_method", ""))
    match method:
        case "fp8" | "fbgemm_fp8":
            rows, columns = given.get("weight_block_size") or _BLOCK
            return Quantization(method, 8, block=(int(rows), int(columns)))
        case "mxfp4":
            return Quantization(method, 4)
        case "awq":
            version = str(given.get("version", "gemm")).lower()
            bits = int(given.get("bits") or given.get("w_bit") or 4)
            if version != "gemm" or bits != 4:
                raise ModelRefused(f"Its weights are of AWQ's kind '{version}' with {bits} bits.")
            return Quantization(method, bits)
        case "gptq":
            bits = int(given.get("bits") or 4)
            if bits not in (2, 4, 8):
                raise ModelRefused(
                    f"Its weights are of GPTQ with {bits} bits; 2, 4 and 8 are known."
                )
            return Quantization(method, bits, given.get("checkpoint_format") == "gptq_v2")
        case "compressed-tensors":
            return Quantization(method, _bits_of_groups(given))
    raise ModelRefused(
        f"Its weights are quantized by '{method}'. Vitrine reads AWQ, GPTQ, FP8, MXFP4 and"
        " compressed-tensors."
    )


def _bits_of_groups(given: dict[str, Any]) -> int:
    """Of compressed-tensors, which may have several groups of layers."""
    if given.get("format") not in (
        "pack-quantized",
        "float-quantized",
        "int-quantized",
        "naive-quantized",
    ):
        raise ModelRefused(
            f"Its compressed-tensors are '{given.get('format')}', which is not known."
        )
    groups = given.get("config_groups", {}).values()
    bits = {int(group["weights"]["num_bits"]) for group in groups}
    if len(bits) != 1 or not bits <= {4, 8}:
        raise ModelRefused(f"Its compressed-tensors have weights of {sorted(bits)} bits.")
    return bits.pop()
