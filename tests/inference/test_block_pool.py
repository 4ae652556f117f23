"""The books of a paged cache against a plain model of them, for any history."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.block_pool import BLOCK_TOKENS, NULL_BLOCK, BlockPool
from tests.inference.cache_stories import ROOTS

Content = tuple[str, tuple[int, ...]]
"""What a full block stands for: its salt, and all tokens up to its end."""


@dataclass
class _Running:
    """A sequence: its tokens, of which the first `num_computed` are computed."""

    token_ids: list[int]
    salt: str
    num_computed: int


@dataclass
class _History:
    """A pool, what was last written into each of its blocks, and when each content was last used."""

    pool: BlockPool
    running: dict[str, _Running] = field(default_factory=dict)
    written: dict[int, Content] = field(default_factory=dict)
    last_used: dict[Content, tuple[int, int]] = field(default_factory=dict)
    now: int = 0

    def come(self, name: str, token_ids: list[int], salt: str) -> None:
        num_cached = self.pool.attach(name, token_ids, salt)
        assert num_cached < len(token_ids), "one is left to compute"
        assert num_cached % BLOCK_TOKENS == 0, "full blocks only"
        found = [self.written[block] for block in self.pool.blocks(name)]
        assert found == _contents(token_ids[:num_cached], salt), "really these tokens"
        self.running[name] = _Running(token_ids, salt, num_cached)
        if not self._reserve(name, len(token_ids) + 1):
            self.go(name)

    def compute(self, name: str, num_tokens: int, junk: int) -> None:
        """The next tokens, and a draft behind them that turns out to be wrong."""
        sequence = self.running[name]
        sequence.num_computed = min(sequence.num_computed + num_tokens, len(sequence.token_ids))
        if not self._reserve(name, sequence.num_computed + junk):
            junk = 0
        self._write(name, sequence.token_ids[: sequence.num_computed] + [-1] * junk)

    def grow(self, name: str, token_ids: list[int]) -> None:
        sequence = self.running[name]
        if self._reserve(name, len(sequence.token_ids) + len(token_ids)):
            sequence.token_ids = sequence.token_ids + token_ids

    def share(self, name: str) -> None:
        sequence = self.running[name]
        self.pool.share(name, sequence.token_ids[: sequence.num_computed], sequence.salt)

    def go(self, name: str, *, is_reusable: bool = True) -> None:
        sequence = self.running.pop(name)
        computed = sequence.token_ids[: sequence.num_computed] if is_reusable else []
        self.pool.release(name, computed, sequence.salt)
        self.now += 1
        for number, content in enumerate(_contents(computed, sequence.salt)):
            self.last_used[content] = (self.now, -number)

    def check(self) -> None:
        self.pool.check()
        cached = [self.written[block] for block in self.pool.cached_blocks()]
        assert cached == sorted(cached, key=lambda content: self.last_used[content])
        assert len(set(cached)) == len(cached), "of two blocks of one content, one is found"
        users: dict[int, set[str]] = {}
        for name, sequence in self.running.items():
            assert len(self.pool.blocks(name)) * BLOCK_TOKENS >= sequence.num_computed
            full = self.pool.blocks(name)[: sequence.num_computed // BLOCK_TOKENS]
            computed = sequence.token_ids[: sequence.num_computed]
            assert [self.written[block] for block in full] == _contents(computed, sequence.salt)
            for block in self.pool.blocks(name):
                users.setdefault(block, set()).add(sequence.salt)
        assert NULL_BLOCK not in users
        assert all(len(salts) == 1 for salts in users.values()), "a block of two salts"
        assert self.pool.used_tokens == len(users) * BLOCK_TOKENS
        assert self.pool.cached_tokens == len(cached) * BLOCK_TOKENS

    def _reserve(self, name: str, num_tokens: int) -> bool:
        """The oldest make room, and only where nothing is free."""
        before = list(self.pool.cached_blocks()), self.pool.used_tokens
        has_room = self.pool.reserve(name, num_tokens)
        cached = list(self.pool.cached_blocks())
        if not has_room:
            assert (cached, self.pool.used_tokens) == before
        assert cached == before[0][len(before[0]) - len(cached) :]
        num_held = self.pool.used_tokens + self.pool.cached_tokens
        assert cached == before[0] or num_held == self.pool.capacity_tokens
        return has_room

    def _write(self, name: str, token_ids: list[int]) -> None:
        """Into the table's blocks, full or not; those in front hold the same already."""
        salt = self.running[name].salt
        blocks = self.pool.blocks(name)
        for number in range(-(-len(token_ids) // BLOCK_TOKENS)):
            content = (salt, tuple(token_ids[: (number + 1) * BLOCK_TOKENS]))
            self.written[blocks[number]] = content


def _contents(token_ids: list[int], salt: str) -> list[Content]:
    ends = range(BLOCK_TOKENS, len(token_ids) + 1, BLOCK_TOKENS)
    return [(salt, tuple(token_ids[:end])) for end in ends]


tails = st.lists(st.integers(0, 1), max_size=40)


@given(data=st.data(), num_blocks=st.sampled_from((4, 9, 16, 200)))
@settings(max_examples=150, deadline=None)
def test_any_history_shares_equal_tokens_only_and_forgets_the_oldest(
    data: st.DataObject, num_blocks: int
) -> None:
    history = _History(BlockPool(num_blocks, max_context_tokens=num_blocks * BLOCK_TOKENS))
    for number in range(data.draw(st.integers(1, 30))):
        names = sorted(history.running)
        action = data.draw(st.sampled_from(["come", "compute", "compute", "grow", "share", "go"]))
        if action == "come" or not names:
            root = data.draw(st.sampled_from(ROOTS))
            token_ids = root[: data.draw(st.integers(1, len(root)))] + data.draw(tails)
            history.come(str(number), token_ids, data.draw(st.sampled_from(("", "bob"))))
            history.check()
            continue
        name = data.draw(st.sampled_from(names))
        if action == "compute":
            history.compute(name, data.draw(st.integers(1, 64)), data.draw(st.integers(0, 40)))
        elif action == "grow":
            history.grow(name, data.draw(tails))
        elif action == "share":
            history.share(name)
        else:
            history.go(name, is_reusable=data.draw(st.integers(0, 4)) > 0)
        history.check()
    for name in list(history.running):
        history.go(name)
    history.check()
    assert history.pool.used_tokens == 0


def _computed(pool: BlockPool, name: str, token_ids: list[int], salt: str = "") -> int:
    """Let a sequence come and be computed; returns what was cached of it."""
    num_cached = pool.attach(name, token_ids, salt)
    assert pool.reserve(name, len(token_ids))
    pool.share(name, token_ids, salt)
    pool.check()
    return num_cached


def test_siblings_share_blocks_while_the_first_one_runs() -> None:
    pool = BlockPool(100, 1000)
    prompt = list(range(100))
    assert _computed(pool, "a", prompt) == 0
    used_tokens = pool.used_tokens
    assert _computed(pool, "b", [*prompt, 5]) == 96
    assert pool.blocks("b")[:6] == pool.blocks("a")[:6], "the same, nothing is copied"
    assert pool.used_tokens == used_tokens + BLOCK_TOKENS
    pool.release("a", prompt)
    assert _computed(pool, "c", prompt) == 96
    for name in "bc":
        pool.release(name, prompt)
    pool.check()
    assert pool.used_tokens == 0
    assert pool.cached_tokens == 96


def test_of_a_prompt_that_is_cached_as_a_whole_the_last_block_is_computed_again() -> None:
    pool = BlockPool(10, 160)
    prompt = list(range(32))
    _computed(pool, "a", prompt)
    assert _computed(pool, "b", prompt) == 16
    assert pool.blocks("a")[0] == pool.blocks("b")[0]
    assert pool.blocks("a")[1] != pool.blocks("b")[1]
    pool.release("b", prompt)
    pool.check()
    assert pool.cached_tokens == 0, "what b has computed twice is free"
    pool.release("a", prompt)
    assert pool.cached_tokens == 32


def test_what_two_computed_at_once_is_kept_once_and_stays_found() -> None:
    pool = BlockPool(4, 64)
    prompt = [1] * 32
    for name in "ab":
        assert pool.attach(name, prompt, "") == 0
        assert pool.reserve(name, 32)
    pool.release("a", prompt)
    assert pool.reserve("x", 32)
    pool.check()
    assert pool.cached_tokens == 0, "a's have made room"
    pool.release("b", prompt)
    assert pool.attach("c", [*prompt, 2], "") == 32, "b's are the same"
    pool.check()


def test_one_that_failed_leaves_nothing_behind_nor_what_it_began_with() -> None:
    pool = BlockPool(20, 320)
    prompt = [1] * 48
    _computed(pool, "a", prompt)
    pool.release("a", prompt)
    assert _computed(pool, "b", [*prompt, 2]) == 48
    assert _computed(pool, "c", [*prompt, 3]) == 48
    pool.release("b")
    pool.check()
    assert pool.cached_tokens == 0
    assert pool.attach("d", [*prompt, 4], "") == 0
    pool.release("c", [*prompt, 3])
    assert pool.attach("e", [*prompt, 4], "") == 48, "c has not failed"
    pool.check()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((("m", "1"), "s"), (("m", "1"), "t")),
        ((("m", "1"), "s"), (("m", "2"), "s")),
        ((("m", "1"), "s"), (("m",), "1s")),
        ((("m", "1"), "s"), (("m", "1", "s"), "")),
        ((("m1",), "s"), (("m", "1"), "s")),
    ],
)
def test_model_revision_and_salt_each_lead_to_other_hashes(
    one: tuple[tuple[str, ...], str], other: tuple[tuple[str, ...], str]
) -> None:
    hashes = []
    for namespace, salt in (one, other):
        pool = BlockPool(4, 64, namespace)
        pool._secret = b"the same"
        hashes.append(list(pool._hashes([1] * 32, salt)))
    assert not set(hashes[0]) & set(hashes[1])


def test_hashes_are_secret() -> None:
    """A hash that can be computed elsewhere could be attacked there."""
    one, other = (list(BlockPool(4, 64)._hashes([1] * 32, "")) for _ in range(2))
    assert not set(one) & set(other)


def test_no_step_looks_at_the_whole_pool() -> None:
    """Of 100,000 cached blocks each is taken, between hits: minutes, if a step were O(blocks)."""
    num_blocks = 100_000
    pool = BlockPool(num_blocks, num_blocks * BLOCK_TOKENS)
    tokens = range(num_blocks * BLOCK_TOKENS)
    assert pool.reserve("all", len(tokens))
    pool.release("all", tokens)
    assert pool.cached_tokens == len(tokens)
    for number in range(num_blocks):
        assert pool.attach("hit", tokens[:40], "") == 32
        pool.release("hit", tokens[:32])
        assert pool.reserve("new", 16)
        pool.release("new", [number] * 16)
    pool.check()
    assert pool.attach("hit", tokens[:64], "") == 32, "the rest has made room"
