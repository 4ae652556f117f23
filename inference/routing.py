"""Which of a model's workers gets a request: pure functions of what is known of each.

Whoever has read the beginning of a prompt before need not read it again, so a conversation goes back
to its worker, unless that one has so much more to do than another that reading it anew is quicker for
all. The rule is that of SGLang's and vLLM's routers, with the costs in tokens: what a worker has
cached is not asked for but remembered from what it was sent, bounded by what its cache can hold.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from inference.prefix_index import BLOCK_TOKENS

SLACK_TOKENS = 2048.0  # more work than another's that a worker may have which has read the prompt
STRAGGLER_COST = 4.0  # what pace.py calls slow
MAX_SIBLINGS = 16  # the choices of one request, at most: `n`
_MOST_BLOCKS = 65_536  # remembered of a worker: some ten megabytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """A worker as a request sees it; tokens, but for the last two.

    `num_cached` of the prompt it has probably read before. `load`: what it has to compute for others,
    in prompt tokens. `num_free` are there for keys and values, `num_empty` without forgetting anybody's.
    `num_siblings` of the request are on board: others of the same prompt.
    """

    num_cached: int = 0
    load: float = 0.0
    num_free: float = inf
    num_empty: float = inf
    num_siblings: int = 0
    is_straggling: bool = False


def choose(candidates: Sequence[Candidate], num_prompt: int, num_tokens: float) -> int:
    """The index of the best worker for a prompt of so many tokens; `num_tokens` with its answer."""
    numbers = range(len(candidates))
    with_siblings = [i for i in numbers if 0 < candidates[i].num_siblings < MAX_SIBLINGS]
    if with_siblings:
        return max(with_siblings, key=lambda i: candidates[i].num_siblings)
    costs = [_cost(candidate, num_tokens) for candidate in candidates]
    cheapest = min(numbers, key=lambda i: (costs[i], -candidates[i].num_empty))
    known = max(numbers, key=lambda i: (candidates[i].num_cached, -costs[i]))
    if candidates[known].is_straggling:
        return cheapest
    slack = SLACK_TOKENS * candidates[known].num_cached / max(1, num_prompt)
    return known if costs[known] < costs[cheapest] + slack else cheapest


def _cost(candidate: Candidate, num_tokens: float) -> float:
    """Tokens until the request is done. Room that it lacks has to be computed free by others."""
    lacking = max(0.0, num_tokens - candidate.num_free)
    cost = candidate.load + num_tokens - candidate.num_cached + lacking
    return cost * (STRAGGLER_COST if candidate.is_straggling else 1.0)


class PrefixMemory:
    """What a worker has probably cached: chained hashes of blocks, the last used ones."""

    def __init__(self) -> None:
        self._keys: OrderedDict[int, None] = OrderedDict()
        self._most = _MOST_BLOCKS

    def __len__(self) -> int:
        return len(self._keys)

    def hold(self, num_tokens: int) -> None:
        """The worker's cache has room for so many."""
        self._most = min(_MOST_BLOCKS, num_tokens // BLOCK_TOKENS)

    def add(self, keys: Sequence[int]) -> None:
        """A prompt's blocks. Its end is forgotten before its beginning, as in the cache."""
        for key in reversed(keys):
            self._keys[key] = None
            self._keys.move_to_end(key)
        while len(self._keys) > self._most:
            self._keys.popitem(last=False)

    def num_cached(self, keys: Sequence[int]) -> int:
        """Tokens that a prompt of these blocks and something before have in common."""
        num_blocks = next((i for i, key in enumerate(keys) if key not in self._keys), len(keys))
        return num_blocks * BLOCK_TOKENS

    def clear(self) -> None:
        self._keys.clear()
