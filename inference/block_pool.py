"""The books of a paged KV cache: blocks of tokens, who uses them, and what they hold.

A sequence has a table of blocks. Full blocks are known by a hash of their tokens and of all in front of
them, so a sequence that begins alike takes the same blocks into its table: nothing is copied, and each
block counts who uses it. Blocks that nobody uses keep their hash until they are taken for something
else, the least recently used first and the end of a sequence before its beginning, without which it
would be of no use. Knows integers and bytes only. Source: vLLM's automatic prefix caching.

Every block is free, used or cached: `check()` proves it. Nothing costs more than a sequence has blocks.
"""

import json
import secrets
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile

BLOCK_TOKENS = 16
NULL_BLOCK = 0  # nobody's: tables of a batch are filled up with it, so that it may be read


@dataclass(slots=True)
class _Table:
    """The blocks of one sequence in order, and the hashes of those that are full and computed.

    Its blocks never change, there are only more of them: a step that runs may have read them.
    """

    blocks: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)


class BlockPool:
    """`num_blocks` blocks of BLOCK_TOKENS tokens, numbered from 1, for sequences of one model.

    Two blocks hold the same tokens where two sequences have computed them at once. The first one is
    found by others; the other is its sequence's own, and free when that ends.
    """

    shares_prefixes = True

    def __init__(
        self, num_blocks: int, max_context_tokens: int, namespace: Sequence[str] = ()
    ) -> None:
        """`namespace`: what keys and values depend on beside tokens and salt: the model's name, say."""
        self.num_blocks = num_blocks
        self.max_context_tokens = max_context_tokens
        self._namespace = tuple(namespace)
        # Nobody outside can compute any hash, so nobody can look for two beginnings of one hash.
        self._secret = secrets.token_bytes(32)
        # The last freed is the next taken: memory that was never written to stays unmapped.
        self._free = list(range(num_blocks, 0, -1))
        # A doubly linked list in C, with each of its nodes at hand: the oldest, the newest and any
        # block in the middle leave it in O(1). (To find the oldest of a plain dict may be O(n).)
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._num_users = [0] * (num_blocks + 1)
        self._hash_of: list[bytes | None] = [None] * (num_blocks + 1)
        self._block_of: dict[bytes, int] = {}
        self._tables: dict[str, _Table] = {}

    # --- counts -------------------------------------------------------------------------------

    @property
    def capacity_tokens(self) -> int:
        return self.num_blocks * BLOCK_TOKENS

    @property
    def used_tokens(self) -> int:
        """Tokens in the blocks of running sequences; a block that several use counts once."""
        return self.capacity_tokens - (len(self._free) + len(self._cached)) * BLOCK_TOKENS

    @property
    def cached_tokens(self) -> int:
        return len(self._cached) * BLOCK_TOKENS

    def blocks(self, sequence_id: str) -> Sequence[int]:
        """The table of a sequence, which grows at its end only; empty if it has no room."""
        table = self._tables.get(sequence_id)
        return table.blocks if table else ()

    def cached_blocks(self) -> Iterator[int]:
        """What nobody uses and may be found still, in the order in which it will be taken."""
        return iter(self._cached)

    # --- a sequence's life ----------------------------------------------------------------------

    def attach(self, sequence_id: str, token_ids: Sequence[int], salt: str) -> int:
        """Begin a new sequence with the known blocks of its beginning; returns their tokens.

        One that is known as a whole computes its last block again, into a block of its own, since at
        least one token is left to compute.
        """
        assert sequence_id not in self._tables
        table = _Table()
        for digest in self._hashes(token_ids[: len(token_ids) - 1], salt):
            block = self._block_of.get(digest)
            if block is None:
                break
            table.blocks.append(block)
            table.hashes.append(digest)
        for block in table.blocks:
            self._cached.pop(block, None)
            self._num_users[block] += 1
        if table.blocks:
            self._tables[sequence_id] = table
        return len(table.blocks) * BLOCK_TOKENS

    def reserve(self, sequence_id: str, num_tokens: int) -> bool:
        """Make room for `num_tokens` of a sequence in all, if need be in place of cached ones.

        False: there is none, and the sequence has what it had.
        """
        num_new = -(-num_tokens // BLOCK_TOKENS) - len(self.blocks(sequence_id))
        if num_new <= 0:
            return True
        if num_new > len(self._free) + len(self._cached):
            return False
        table = self._tables.setdefault(sequence_id, _Table())
        for _ in range(num_new):
            block = self._take()
            self._num_users[block] = 1
            table.blocks.append(block)
        return True

    def count_cached(self, token_ids: Sequence[int], salt: str) -> int:
        """How many tokens of a beginning could be had without computing them; changes nothing."""
        known = takewhile(self._block_of.__contains__, self._hashes(token_ids, salt))
        return sum(BLOCK_TOKENS for _ in known)

    def share(self, sequence_id: str, token_ids: Sequence[int], salt: str) -> None:
        """Let others use the full blocks of what is computed of a running sequence.

        Each time the blocks that are new are added, so it may be called after every step.
        """
        table = self._tables[sequence_id]
        assert len(token_ids) <= len(table.blocks) * BLOCK_TOKENS
        new = list(self._hashes(token_ids, salt, behind=table.hashes))
        for block, digest in zip(table.blocks[len(table.hashes) :], new, strict=False):
            self._know(block, digest)
        table.hashes += new

    def release(self, sequence_id: str, token_ids: Sequence[int] = (), salt: str = "") -> None:
        """End a sequence; its full blocks stay for others if it says which tokens it has computed.

        If it does not, none of them is found again, whoever has computed it: they may be wrong, and
        one that everybody failed at would never go. Unknown ids are fine.
        """
        if sequence_id not in self._tables:
            return
        if token_ids:
            self.share(sequence_id, token_ids, salt)
        table = self._tables.pop(sequence_id)
        if not token_ids:
            self._distrust(table)
        for block in table.blocks:
            self._num_users[block] -= 1
        known = zip(table.blocks, table.hashes, strict=False)  # the last block may not be full
        for block, digest in reversed(list(known)):
            self._touch(self._know(block, digest))
        for block in table.blocks:
            if not self._num_users[block] and self._hash_of[block] is None:
                self._free.append(block)

    def forget_all(self) -> None:
        """Every block is free. Nobody has a table."""
        assert not self._tables
        while self._cached:
            self._free.append(self._take_oldest())

    def give_back(self) -> None:
        """Nothing: pages are one allocation for all blocks, and forgetting one frees no byte of it."""

    def check(self) -> None:
        """Prove that the books are right. Raises AssertionError; called whenever the engine idles."""
        used = Counter(block for table in self._tables.values() for block in table.blocks)
        free, cached = set(self._free), set(self._cached)
        assert len(self._free) + len(used) + len(cached) == self.num_blocks
        assert free | cached | set(used) == set(range(1, self.num_blocks + 1)), "a lost block"
        assert sum(self._num_users) == sum(used.values())
        assert all(self._num_users[block] == num for block, num in used.items())
        assert all(self._hash_of[block] == digest for digest, block in self._block_of.items())
        assert sum(digest is not None for digest in self._hash_of) == len(self._block_of)
        assert not any(self._hash_of[block] for block in free), "known, but free"
        assert all(self._hash_of[block] for block in cached), "cached, but never to be found"
        for table in self._tables.values():
            assert len(table.hashes) <= len(table.blocks)

    # --- blocks and hashes ----------------------------------------------------------------------

    def _take(self) -> int:
        """A block for new tokens: a free one, else what was not used for the longest time."""
        if self._free:
            return self._free.pop()
        return self._take_oldest()

    def _take_oldest(self) -> int:
        block, _ = self._cached.popitem(last=False)
        self._forget(block)
        return block

    def _know(self, block: int, digest: bytes) -> int:
        """Let a block be found by its hash, if no other is; returns the one that is."""
        known = self._block_of.setdefault(digest, block)
        if known == block:
            self._hash_of[block] = digest
        return known

    def _forget(self, block: int) -> None:
        digest, self._hash_of[block] = self._hash_of[block], None
        if digest is not None:
            del self._block_of[digest]

    def _distrust(self, table: _Table) -> None:
        for block in table.blocks:
            self._forget(block)
        table.hashes = []

    def _touch(self, block: int) -> None:
        """A known block was used just now."""
        if not self._num_users[block]:
            self._cached[block] = None
            self._cached.move_to_end(block)

    def _hashes(
        self, token_ids: Sequence[int], salt: str, behind: Sequence[bytes] = ()
    ) -> Iterator[bytes]:
        """Of each full block behind those that have `behind`: 16 bytes, which stand for its tokens.

        Nobody finds two of one hash, so tokens are not compared.
        """
        digest = behind[-1] if behind else self._root(salt)
        first = len(behind) * BLOCK_TOKENS
        for start in range(first, len(token_ids) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
            tokens = _as_bytes(token_ids[start : start + BLOCK_TOKENS])
            digest = blake2b(digest + tokens, digest_size=16).digest()
            yield digest

    def _root(self, salt: str) -> bytes:
        """What all hashes of one model and salt go back to: no others share a block with them."""
        names = json.dumps([*self._namespace, salt]).encode()  # no two lists look alike
        return blake2b(names, digest_size=16, key=self._secret).digest()


def _as_bytes(token_ids: Sequence[int]) -> bytes:
    """Four for each token, or eight where some stand for an image: of no two blocks the same."""
    try:
        return array("i", token_ids).tobytes()
    except OverflowError:
        return array("q", token_ids).tobytes()
