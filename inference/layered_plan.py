"""Which of a plan's prompts passes the layers step by step: see layered_chunk. Knows integers only."""

from collections.abc import Iterable

from inference.layered_chunk import LayeredChunk, tokens_of_chunk
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

    One at a time: its rows are the last of the step, so that the others lie together.
    """
    under_way = next((sequence for sequence in running if sequence.chunk), None)
    if under_way is not None and not _can(plan, under_way):
        under_way.chunk = None
        under_way = None
    if under_way is None and share is not None:
        under_way = _begun(plan, num_layers, share, budget)
    chunk = under_way.chunk if under_way else None
    planned = dict(plan).get(under_way) if under_way else None
    if chunk is None or under_way is None or planned is None:
        return plan
    chunk.plan(chunk.num_tokens if share is None else share * planned)
    others = [(sequence, num) for sequence, num in plan if sequence is not under_way]
    return [*others, (under_way, chunk.num_tokens)]


def _can(plan: Plan, reader: Sequence) -> bool:
    """What an adapter adds to a layer is told of all rows of a step."""
    return not any(s.request.adapter for s in (reader, *(s for s, _ in plan)))


def _begun(plan: Plan, num_layers: int, share: float, budget: int) -> Sequence | None:
    """Of those whose prompts are read on in this step, the one that has most behind it begins."""
    longest: tuple[Sequence, int] | None = None
    for sequence, num_planned in plan:
        if _may_begin(sequence, num_planned) and (
            longest is None or sequence.num_computed > longest[0].num_computed
        ):
            longest = sequence, num_planned
    if longest is None or not _can(plan, longest[0]):
        return None
    sequence, num_planned = longest
    most_tokens = min(_num_left(sequence), budget - len(plan))
    num_tokens = tokens_of_chunk(most_tokens, share * num_planned, num_layers)
    if num_tokens <= num_planned:
        return None
    sequence.chunk = LayeredChunk(num_tokens, num_layers)
    return sequence


def _may_begin(sequence: Sequence, num_planned: int) -> bool:
    is_rated = sequence.request.params.num_prompt_logprobs is not None
    is_long = sequence.num_computed >= _BEHIND_TOKENS
    return is_long and not is_rated and _num_left(sequence) > num_planned


def _num_left(sequence: Sequence) -> int:
    """Tokens of the prompt; what is read again of an answer is computed in another way."""
    return sequence.num_prompt - sequence.num_computed
