"""The network in the form that trains fast: Qwen3 with fused projections, in bfloat16.

The same mathematics as `Qwen3ForCausalLM`; `to_hub` renames and splits the weights for it (a test
compares the logits). Knows nothing of data or optimisers.
"""

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network. Names are those of the hub's configuration files."""

    vocab_size: int = 4096
    hidden_size: int = 256
    intermediate_size: int = 640
    num_hidden_layers: int = 8
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Scale x (..., features) to unit root mean square. Source: Zhang and Sennrich 2019."""
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rope_table(shape: Shape, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each (length, head_dim). Source: Su et al. 2021, half-split layout."""
    half = shape.head_dim // 2
    frequencies = shape.rope_theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.arange(length, dtype=torch.float32)[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn x (batch, heads, length, head_dim) by its positions."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def causal_attention(q: Tensor, k: Tensor, v: Tensor, block: int = 128) -> Tensor:
    """Causal attention by blocks of queries, for torch.compile; q: (batch, heads, length, d), and k and
    v with as many heads or fewer.

    Forward and backward take 14, 18 and 34 ms at lengths 256, 512 and 1,024 (4,096 tokens, bf16, two
    cores), `scaled_dot_product_attention` 28, 47 and 50: its backward is slow on CPUs.
    """
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    length, made = q.shape[2], []
    for start in range(0, length, block):
        end = min(start + block, length)
        scores = q[:, :, start:end] @ k[:, :, :end].transpose(-1, -2) * q.shape[-1] ** -0.5
        mask = torch.full((end - start, end - start), float("-inf"), dtype=q.dtype).triu(1)
        scores = torch.cat((scores[..., :start], scores[..., start:] + mask), dim=-1)
        made.append(torch.softmax(scores, dim=-1) @ v[:, :, :end])
    return torch.cat(made, dim=2)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that stand one behind the other in one: where each token of it stands in its own row
    (tokens,), where they begin, with the end (rows + 1,; both in 32-bit integers), and how long the
    longest is."""

    positions: Tensor
    starts: Tensor
    max_length: int


@torch.compiler.disable  # type: ignore[untyped-decorator]
def packed_attention(q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> Tensor:
    """Causal attention within each of many rows.

    q: (1, heads, tokens, d), k and v with as many heads or fewer. On a GPU in 16 bits, by
    FlashAttention's own lengths (Dao 2023). torch.compile is kept out: it would make another graph for
    each number of rows.
    """
    if not q.is_cuda:
        parts = [slice(*pair) for pair in pairwise(rows.starts.tolist())]
        mixed = [causal_attention(q[:, :, p], k[:, :, p], v[:, :, p]) for p in parts]
        return torch.cat(mixed, dim=2)
    q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))  # (tokens, heads, d)
    forward = torch.ops.aten._flash_attention_forward
    lengths = (rows.starts, rows.starts, rows.max_length, rows.max_length)
    found = forward(q, k, v, *lengths, 0.0, True, False)[0]
    return found.transpose(0, 1)[None]  # type: ignore[no-any-return]


class Block(nn.Module):
    """One decoder layer: grouped-query attention with normed queries and keys, then SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        hidden, head = shape.hidden_size, shape.head_dim
        self.q_rows = shape.num_attention_heads * head
        self.kv_rows = shape.num_key_value_heads * head
        self.qkv = nn.Parameter(torch.empty(self.q_rows + 2 * self.kv_rows, hidden))
        self.out = nn.Parameter(torch.empty(hidden, self.q_rows))
        self.gate_up = nn.Parameter(torch.empty(2 * shape.intermediate_size, hidden))
        self.down = nn.Parameter(torch.empty(hidden, shape.intermediate_size))
        self.norm_attention = nn.Parameter(torch.ones(hidden))
        self.norm_mlp = nn.Parameter(torch.ones(hidden))
        self.norm_q = nn.Parameter(torch.ones(head))
        self.norm_k = nn.Parameter(torch.ones(head))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, rows: Rows | None = None) -> Tensor:
        """x: (batch, length, hidden). Every row is one dialog, padded on the right; or there is one that
        `rows` takes apart."""
        batch, length, _ = x.shape
        shape, eps = self.shape, self.shape.rms_norm_eps
        qkv = F.linear(rms_norm(x, self.norm_attention, eps), self.qkv)
        q, k, v = torch.split(qkv, [self.q_rows, self.kv_rows, self.kv_rows], dim=-1)
        q = rms_norm(q.view(batch, length, -1, shape.head_dim), self.norm_q, eps).transpose(1, 2)
        k = rms_norm(k.view(batch, length, -1, shape.head_dim), self.norm_k, eps).transpose(1, 2)
        v = v.view(batch, length, -1, shape.head_dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        mixed = causal_attention(q, k, v) if rows is None else packed_attention(q, k, v, rows)
        x = x + F.linear(mixed.transpose(1, 2).reshape(batch, length, self.q_rows), self.out)
        gate, up = F.linear(rms_norm(x, self.norm_mlp, eps), self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


class Network(nn.Module):
    """The whole decoder with tied embeddings."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Parameter(torch.empty(shape.vocab_size, shape.hidden_size))
        self.cos: Tensor
        self.sin: Tensor
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.num_hidden_layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden_size))
        cos, sin = rope_table(shape, shape.max_position_embeddings)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def hidden(self, ids: Tensor, rows: Rows | None = None) -> Tensor:
        """Final states (batch, length, hidden) for ids (batch, length); `rows` of a batch of one."""
        x = F.embedding(ids, self.embedding)
        places = slice(ids.shape[1]) if rows is None else rows.positions
        cos, sin = self.cos[places].to(x.dtype), self.sin[places].to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin, rows)
        return rms_norm(x, self.norm, self.shape.rms_norm_eps)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, length, vocab)."""
        return F.linear(self.hidden(ids), self.embedding)

    def loss(
        self,
        ids: Tensor,
        places: Tensor,
        targets: Tensor,
        counts: Tensor | None = None,
        rows: Rows | None = None,
    ) -> Tensor:
        """Summed cross entropy at the flat positions `places` only, to spare the large product, each
        as often as `counts` says (once)."""
        states = self.hidden(ids, rows).flatten(0, 1)[places]
        logits = F.linear(states, self.embedding).float()
        if counts is None:
            return F.cross_entropy(logits, targets, reduction="sum")
        return F.cross_entropy(logits, targets, reduction="none") @ counts


def initialise(network: Network, seed: int) -> None:
    """Normal weights; the matrices that write to the residual stream start at zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.dim() < 2:
                weight.fill_(1.0)
            elif name.endswith(("out", "down")):
                weight.zero_()
            else:
                scale = 0.02 if name == "embedding" else weight.shape[1] ** -0.5
                weight.copy_(torch.randn(weight.shape, generator=generator) * scale)


def to_hub(shape: Shape, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights under the names of `Qwen3ForCausalLM`, projections taken apart."""
    q_rows = shape.num_attention_heads * shape.head_dim
    kv_rows = shape.num_key_value_heads * shape.head_dim
    made = {"model.embed_tokens.weight": weights["embedding"], "model.norm.weight": weights["norm"]}
    for layer in range(shape.num_hidden_layers):
        of, to = f"blocks.{layer}.", f"model.layers.{layer}."
        q, k, v = torch.split(weights[f"{of}qkv"], [q_rows, kv_rows, kv_rows])
        gate, up = weights[f"{of}gate_up"].chunk(2)
        made |= {
            f"{to}self_attn.q_proj.weight": q,
            f"{to}self_attn.k_proj.weight": k,
            f"{to}self_attn.v_proj.weight": v,
            f"{to}self_attn.o_proj.weight": weights[f"{of}out"],
            f"{to}self_attn.q_norm.weight": weights[f"{of}norm_q"],
            f"{to}self_attn.k_norm.weight": weights[f"{of}norm_k"],
            f"{to}mlp.gate_proj.weight": gate,
            f"{to}mlp.up_proj.weight": up,
            f"{to}mlp.down_proj.weight": weights[f"{of}down"],
            f"{to}input_layernorm.weight": weights[f"{of}norm_attention"],
            f"{to}post_attention_layernorm.weight": weights[f"{of}norm_mlp"],
        }
    return {name: weight.contiguous() for name, weight in made.items()}


def from_hub(shape: Shape, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `to_hub`: weights of the training network, in float32."""
    made = {"embedding": tensors["model.embed_tokens.weight"], "norm": tensors["model.norm.weight"]}
    for layer in range(shape.num_hidden_layers):
        of, to = f"model.layers.{layer}.", f"blocks.{layer}."
        attention = [tensors[f"{of}self_attn.{name}_proj.weight"] for name in "qkv"]
        mlp = [tensors[f"{of}mlp.{name}_proj.weight"] for name in ("gate", "up")]
        made |= {
            f"{to}qkv": torch.cat(attention),
            f"{to}out": tensors[f"{of}self_attn.o_proj.weight"],
            f"{to}norm_q": tensors[f"{of}self_attn.q_norm.weight"],
            f"{to}norm_k": tensors[f"{of}self_attn.k_norm.weight"],
            f"{to}gate_up": torch.cat(mlp),
            f"{to}down": tensors[f"{of}mlp.down_proj.weight"],
            f"{to}norm_attention": tensors[f"{of}input_layernorm.weight"],
            f"{to}norm_mlp": tensors[f"{of}post_attention_layernorm.weight"],
        }
    return {name: weight.float() for name, weight in made.items()}


def deepened(weights: dict[str, Tensor], num_theirs: int, num_ours: int) -> dict[str, Tensor]:
    """Weights of `num_theirs` layers under the names of `num_ours`, spread evenly; those between are not
    there. A new layer whose `out` and `down` are zero, as at first, leaves the function as it was."""
    made = {}
    for name, weight in weights.items():
        head, _, rest = name.partition(".")
        layer, _, part = rest.partition(".")
        place = int(layer) * num_ours // num_theirs if head == "blocks" else 0
        made[f"blocks.{place}.{part}" if head == "blocks" else name] = weight
    return made


def hub_config(shape: Shape, *, eos_id: int, pad_id: int) -> dict[str, Any]:
    """config.json for `AutoModelForCausalLM`."""
    sizes = asdict(shape)
    theta = sizes.pop("rope_theta")
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **sizes,
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": shape.num_hidden_layers,
        "initializer_range": 0.02,
        "use_cache": True,
        "bos_token_id": None,
        "eos_token_id": eos_id,
        "pad_token_id": pad_id,
        "dtype": "bfloat16",
    }
