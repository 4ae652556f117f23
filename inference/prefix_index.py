"""Which cached slab begins with the same tokens: chained hashes of blocks of tokens.

The hash of a block covers everything in front of it, so one lookup per block finds the longest
common beginning (vLLM's and nano-vllm's scheme). A hit is compared token by token: a collision of
hashes is a miss, never a wrong answer. Knows integers only.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

BLOCK_TOKENS = 16


class Holder(Protocol):
    """Whatever keeps the keys and values of some tokens for one salt."""

    salt: str
    token_ids: Sequence[int]


H = TypeVar("H", bound=Holder)


class PrefixIndex(Generic[H]):
    """Holders by the hashes of their full blocks."""

    def __init__(self) -> None:
        # A dict as an ordered set: the newest holder of a block is its last one.
        self._holders: dict[int, dict[H, None]] = {}
        self._ends: dict[
            H, tuple[int, int]
        ] = {}  # of each, the blocks that are in, the last's hash

    def add(self, holder: H) -> None:
        """Add a holder, or what one has got since: that costs as much as is new."""
        num_known, end = self._ends.get(holder, (0, hash(holder.salt)))
        for key in block_hashes(holder.token_ids, end, behind=num_known):
            self._holders.setdefault(key, {})[holder] = None
            num_known, end = num_known + 1, key
        self._ends[holder] = num_known, end

    def remove(self, holder: H) -> None:
        """The holder's tokens and salt must be those that it was added with."""
        del self._ends[holder]
        for key in block_hashes(holder.token_ids, hash(holder.salt)):
            holders = self._holders[key]
            del holders[holder]
            if not holders:
                del self._holders[key]

    def find(self, token_ids: Sequence[int], salt: str) -> tuple[H | None, int]:
        """The holder with the longest common beginning of full blocks, and how much is common.

        Beyond the last common block single tokens count as well.
        """
        found: H | None = None
        for key in block_hashes(token_ids, hash(salt)):
            holders = self._holders.get(key)
            if holders is None:
                break
            found = next(reversed(holders))
        if found is None or found.salt != salt:
            return None, 0
        num_common = count_common(found.token_ids, token_ids)
        return (found, num_common) if num_common >= BLOCK_TOKENS else (None, 0)

    def holders(self) -> set[H]:
        return {*self._ends, *(holder for holders in self._holders.values() for holder in holders)}


def block_hashes(token_ids: Sequence[int], key: int, behind: int = 0) -> Iterator[int]:
    """Those of the full blocks but the first `behind`; `key` is what the next one is chained to."""
    first = behind * BLOCK_TOKENS
    for start in range(first, len(token_ids) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        key = hash((key, *token_ids[start : start + BLOCK_TOKENS]))
        yield key


def count_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common beginning; whole blocks at C's speed, the last one by single tokens."""
    limit = min(len(one), len(other))
    start = 0
    while start < limit and one[start : start + 256] == other[start : start + 256]:
        start += 256
    start = min(start, limit)
    while start < limit and one[start] == other[start]:
        start += 1
    return start
