"""Which of a plan's prompts passes the layers step by step: see layered_chunk. Knows integers only."""

from collections.abc import Iterable

from inference.layered_chunk import LayeredChunk, tokens_of_chunk
from inference.priority import RANK
from inference.sequence import Sequence

Plan = list[tuple[Sequence, int]]
_BEHIND_TOKENS = 512  # of fewer keys, even a chunk of a few tokens reads little


def layered(
    plan: Plan,
    running: Iterable[Sequence],
    num_layers: int,
    share: float | None,
    *,
    budget: int,
) -> Plan:
    """The plan, where a prompt of which little may be read beside those who write goes through some of
    the layers with more of it. It may do `share` of what it was planned to do; None: all of it.

    One at a time, whose rows are the last of the step, so that the others lie together. Of several long
    prompts it has the others' parts: even a token of theirs would read all of their keys.
    """
    reader = next((sequence for sequence in running if sequence.chunk), None)
    if _has_adapters(plan, reader):
        if reader is not None:
            reader.chunk = None
        return plan
    long = {s: num for s, num in plan if s is reader or (share is not None and _is_long(s, num))}
    if reader is None and share is not None:
        reader = _next(long)
        if reader is not None:
            _begin_chunk(reader, share * sum(long.values()), num_layers, budget - len(plan))
    if reader is None or reader.chunk is None or reader not in long:
        return plan
    num_tokens = reader.chunk.num_tokens
    if num_tokens + sum(num for s, num in plan if s not in long) > budget:
        reader.chunk = None  # there are more who write by now, or less memory
        return plan
    reader.chunk.plan(num_tokens if share is None else share * sum(long.values()))
    return [*((s, num) for s, num in plan if s not in long), (reader, num_tokens)]


def _has_adapters(plan: Plan, reader: Sequence | None) -> bool:
    """What an adapter adds to a layer is told of all rows of a step."""
    planned = [sequence for sequence, _ in plan]
    return any(s.request.adapter for s in (planned if reader is None else [*planned, reader]))


def _is_long(sequence: Sequence, num_planned: int) -> bool:
    """Whether it has much behind it, and goes on behind this step."""
    is_rated = sequence.request.params.num_prompt_logprobs is not None
    is_long = sequence.num_computed >= _BEHIND_TOKENS
    return is_long and not is_rated and _num_left(sequence) > num_planned


def _next(long: Iterable[Sequence]) -> Sequence | None:
    """Of the highest class, who has had the fewest chunks."""
    turns = sorted(long, key=lambda s: (RANK[s.request.priority], s.num_chunks))
    return turns[0] if turns else None


def _begin_chunk(reader: Sequence, worth: float, num_layers: int, budget: int) -> None:
    """Where a step may do so much that all layers can be passed by as many tokens, there is no chunk."""
    num_tokens = tokens_of_chunk(min(_num_left(reader), budget), worth, num_layers)
    if num_tokens > worth:
        reader.chunk = LayeredChunk(num_tokens, num_layers)
        reader.num_chunks += 1


def _num_left(sequence: Sequence) -> int:
    """Tokens of the prompt; what is read again of an answer is computed in another way."""
    return sequence.num_prompt - sequence.num_computed
