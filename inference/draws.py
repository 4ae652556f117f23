"""What a step's logits come to: a token for each sequence that is due, and how likely prompts were.

Where that fails for all, it is done one by one: whoever is to blame has its problem alone.
"""

import logging
from collections.abc import Callable

from torch import Tensor

from inference.errors import GenerationFailed, InvalidParameter
from inference.gpu import sampling as on_device
from inference.grammar import GrammarGaveUp, GrammarState
from inference.logits import Row, shaped
from inference.logprobs import logprobs_of
from inference.messages import Failed, PromptLogprobs, TokenLogprob
from inference.model_runner import StepResult
from inference.native.rows import largest as most_likely
from inference.out_of_memory import is_fault
from inference.sampler import sample
from inference.sequence import Sequence

logger = logging.getLogger(__name__)

Drawn = tuple[int, tuple[TokenLogprob, ...], bool]
"""A token, how likely it was, and whether its logits were no numbers."""

Problems = dict[str, Failed]
"""What the sequences of these ids fail with."""

GrammarOf = Callable[[str], GrammarState | None]


def lost(message: str) -> Failed:
    return Failed(GenerationFailed.code, message)


def of_caller(error: GrammarGaveUp) -> Failed:
    return Failed(InvalidParameter.code, str(error))


# --- prompts ----------------------------------------------------------------------------------------


def rate_prompts(result: StepResult, problems: Problems) -> list[tuple[Sequence, PromptLogprobs]]:
    """How likely prompts were; adds to the problems where one cannot be rated."""
    rated = []
    for sequence, logits in result.prompts:
        try:
            rated.append((sequence, rate_prompt(sequence, logits)))
        except Exception as error:
            if is_fault(error):
                raise
            logger.exception("the prompt of %s cannot be rated", sequence.id)
            problems[sequence.id] = lost(f"The engine could not rate the prompt: {error}")
    return rated


def rate_prompt(sequence: Sequence, logits: Tensor) -> PromptLogprobs:
    """logits: (tokens, vocab), in front of the next tokens that are not rated yet."""
    num_top = sequence.request.params.num_prompt_logprobs
    start = sequence.num_prompt_rated
    ids = sequence.token_ids[start : start + len(logits)]
    sequence.num_prompt_rated += len(ids)
    return PromptLogprobs(start, logprobs_of(logits, ids, num_top or 0))


# --- tokens -----------------------------------------------------------------------------------------


def draw_all(
    result: StepResult, eos_ids: frozenset[int], grammar_of: GrammarOf, problems: Problems
) -> list[tuple[Sequence, list[Drawn]]]:
    """A token for each sequence that is due, and those behind its draft; adds to the problems.

    Where a sequence has one, what was drawn for it means nothing.
    """
    if not result.due:
        return []
    try:
        return draw(result, eos_ids, grammar_of, problems)
    except Exception as error:
        if is_fault(error):
            raise
        logger.exception("drawing for %d sequences failed", len(result.due))
    drawn = []
    for alone in result.one_by_one():
        try:
            drawn += draw(alone, eos_ids, grammar_of, problems)
        except Exception as error:
            if is_fault(error):
                raise
            (sequence,) = alone.due
            problems[sequence.id] = lost(f"The engine could not draw a token: {error}")
            drawn.append((sequence, []))
    return drawn


def draw(
    result: StepResult, eos_ids: frozenset[int], grammar_of: GrammarOf, problems: Problems
) -> list[tuple[Sequence, list[Drawn]]]:
    """The same, for all at once; what goes wrong is raised."""
    logits = result.logits
    masks = _masks(result.due, grammar_of, problems)
    rows = [row for s in result.due for row in _rows(s, masks.get(s.id))]
    is_here = logits.device.type == "cpu"
    ids = (sample if is_here else on_device.sample)(
        shaped(logits, rows, eos_ids),
        [row.params for row in rows],
        [row.position for row in rows],
    )
    rated = _rated([row.sequence for row in rows], ids, logits)
    is_broken = most_likely(logits)[0].isnan()
    drawn = zip(ids, rated, is_broken.tolist(), strict=True)
    of_each = []
    for sequence in result.due:
        own = [next(drawn) for _ in range(1 + len(sequence.draft))]
        if sequence.id in masks:  # behind those the grammar takes nothing of the draft
            own = own[: len(masks[sequence.id])]
        of_each.append((sequence, own))
    return of_each


def _masks(
    due: list[Sequence], grammar_of: GrammarOf, problems: Problems
) -> dict[str, list[bytes]]:
    """Which tokens the grammars allow, here and along the drafts; adds to the problems where one gives
    up."""
    masks = {}
    for sequence in due:
        grammar = grammar_of(sequence.id)
        if grammar is None:
            continue
        try:
            masks[sequence.id] = grammar.masks_along(sequence.draft)
        except GrammarGaveUp as error:
            problems[sequence.id] = of_caller(error)
    return masks


def _rows(sequence: Sequence, masks: list[bytes] | None) -> list[Row]:
    """Where a sequence that is due draws: behind its last token, and behind each one of its draft."""
    draft = sequence.draft
    return [
        Row(sequence, draft[:i], masks[i] if masks and i < len(masks) else None)
        for i in range(1 + len(draft))
    ]


def _rated(
    owners: list[Sequence], ids: list[int], logits: Tensor
) -> list[tuple[TokenLogprob, ...]]:
    """Log probabilities of the drawn tokens, for those who asked. logits: (rows, vocab)."""
    rated = []
    for row, (sequence, token_id) in enumerate(zip(owners, ids, strict=True)):
        num_top = sequence.request.params.num_logprobs
        is_asked = num_top is not None
        own = logits[row : row + 1]
        rated.append(logprobs_of(own, [token_id], num_top or 0) if is_asked else ())
    return rated
