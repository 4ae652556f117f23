"""A chat within a budget of tokens: which of its turns the model is shown. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from inference.chat_messages import ChatMessage
from inference.errors import ContextTooLong

Ids = TypeVar("Ids", bound=Sequence[int])


def prompt_room(max_context_tokens: int, max_tokens: int | None) -> int:
    """Tokens that a prompt may have: a quarter of the context is kept for the answer, or as much as
    it was asked to have, up to a half."""
    if max_tokens:
        return max_context_tokens - min(max_tokens, max_context_tokens // 2)
    return max_context_tokens - max_context_tokens // 4


def fit_messages(
    messages: list[ChatMessage],
    encode: Callable[[list[ChatMessage]], Ids],
    max_prompt_tokens: int,
    *,
    max_context_tokens: int,
) -> tuple[list[ChatMessage], Ids]:
    """The newest turns that fit, and their token ids.

    The system message and the last user message are always kept; whole turns are dropped from the
    oldest on. Raises ContextTooLong when not even those fit; what of the context is no room for the
    prompt is kept for the answer. Encodes about log2(turns) times, and
    never much more text than fits.
    """
    if may_fit(messages, max_prompt_tokens):
        ids = encode(messages)
        if len(ids) <= max_prompt_tokens:
            return messages, ids
    starts = [i for i, m in enumerate(messages) if m["role"] == "user"] or [0]

    def newest(num_turns: int) -> list[ChatMessage]:
        return messages[: starts[0]] + messages[starts[-num_turns] :]

    fitting = newest_that_fit(newest, len(starts), encode, max_prompt_tokens)
    if fitting is None:
        raise ContextTooLong(
            num_prompt_tokens=len(encode(newest(1))),
            max_context_tokens=max_context_tokens,
            num_reserved=max_context_tokens - max_prompt_tokens,
        )
    return newest(fitting[0]), fitting[1]


def newest_that_fit(
    newest: Callable[[int], list[ChatMessage]],
    num_turns: int,
    encode: Callable[[list[ChatMessage]], Ids],
    max_prompt_tokens: int,
) -> tuple[int, Ids] | None:
    """How many of the newest turns fit, and the ids of a prompt with them; None: not even one.

    `newest(n)` is the prompt with n turns. Encodes about log2(num_turns) times, and never much more
    text than fits.
    """
    # Twice as many turns each time until they no longer fit; then halve what lies between.
    fitting: tuple[int, Ids] | None = None
    low, high = 0, num_turns + 1
    while low + 1 < high:
        middle = min(max(1, 2 * low), high - 1) if high > num_turns else (low + high) // 2
        ids = encode(newest(middle))
        if len(ids) <= max_prompt_tokens:
            low, fitting = middle, (middle, ids)
        else:
            high = middle
    return fitting


def may_fit(messages: list[ChatMessage], max_prompt_tokens: int) -> bool:
    """Whether it is worth a try to encode them all."""
    num_chars = sum(len(message["content"]) for message in messages)
    return num_chars <= max_prompt_tokens * _LIKELY_CHARS_PER_TOKEN


_LIKELY_CHARS_PER_TOKEN = 8  # more than of any usual text: such a chat is worth one try as a whole
