"""What every KV cache offers: books for the scheduler, keys and values for the attention function.

Slabs (`kv_cache`), slabs with slots of states (`hybrid_kv`) and pages (`paged_kv`) are behind it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class KVBooks(Protocol):
    """Who has room for how many tokens. Knows integers only, no tensors.

    Every token of `capacity_tokens` is free, used by a running sequence, or cached: kept for whoever
    begins with the same tokens under the same salt, while there is room. `shares_prefixes`: also of
    a sequence that still runs.
    """

    @property
    def capacity_tokens(self) -> int: ...
    @property
    def max_context_tokens(self) -> int: ...
    @property
    def used_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def shares_prefixes(self) -> bool: ...

    def reserve(self, sequence_id: str, num_tokens: int) -> bool:
        """Make room for `num_tokens` of a sequence in all, if need be in place of cached ones.

        False: there is none, and the sequence has what it had.
        """
        ...

    def attach(self, sequence_id: str, token_ids: Sequence[int], salt: str) -> int:
        """Give a new sequence what is cached of its beginning; returns how many tokens that is.

        At least one token is left to compute, or there would be no logits.
        """
        ...

    def count_cached(self, token_ids: Sequence[int], salt: str) -> int:
        """How many tokens of a beginning could be had without computing them; changes nothing."""
        ...

    def share(self, sequence_id: str, token_ids: Sequence[int], salt: str) -> None:
        """Let others begin with what is computed of a running sequence: `token_ids`, all of it."""
        ...

    def release(self, sequence_id: str, token_ids: Sequence[int] = (), salt: str = "") -> None:
        """End a sequence. Others may begin with `token_ids`, which it has computed; without any,
        what it holds is not to be trusted. Unknown ids are fine, so that every end may call it.
        """
        ...

    def forget_all(self) -> None:
        """Forget everything, and give all of its memory back. Nobody has a sequence here."""
        ...

    def give_back(self) -> None:
        """Forget what is only cached, where its memory goes back to the system by that."""
        ...

    def check(self) -> None:
        """Prove that the books are right. Raises AssertionError; called whenever the engine idles."""
        ...


class KVCache(KVBooks, Protocol):
    """Books with the keys and values themselves."""

    def extend(
        self, layer: int, sequence_id: str, start: int, keys: "Tensor", values: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        """Write keys and values behind `start` and return all of them so far.

        keys: (kv_heads, new_tokens, head_dim), values: (kv_heads, new_tokens, value_dim);
        returned are (kv_heads, start + new_tokens, dim). Needs an earlier `reserve`.
        """
        ...

    def bytes_per_token(self, sequence_id: str) -> int:
        """What each token of a sequence takes, over all layers that have written so far."""
        ...
