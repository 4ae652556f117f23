"""Draws texts under a grammar as the sampler would, with the built-in vocabulary."""

from collections.abc import Collection
from random import Random

from hypothesis import strategies as st
from tokenizers import Tokenizer

from inference.builtin.tokenizer import load
from inference.grammar import Grammars

TOKENIZER = load()
EOS = {TOKENIZER.token_to_id("<|im_end|>"), TOKENIZER.token_to_id("<|endoftext|>")}
GRAMMARS = Grammars(TOKENIZER, eos_ids=EOS, vocab_size=TOKENIZER.get_vocab_size() + 30)


def with_marks(marks: Collection[str]) -> tuple[Tokenizer, Grammars]:
    """The built-in vocabulary with tokens of another family of models."""
    tokenizer = Tokenizer.from_str(TOKENIZER.to_str())
    tokenizer.add_special_tokens(list(marks))
    vocab_size = tokenizer.get_vocab_size() + 30
    return tokenizer, Grammars(tokenizer, eos_ids=EOS, vocab_size=vocab_size)


def drawn(
    grammar: str,
    data: st.DataObject,
    *,
    preferred: Collection[str] = (),
    most: int = 2000,
    of: tuple[Tokenizer, Grammars] = (TOKENIZER, GRAMMARS),
) -> bytes:
    """A text drawn at random under the masks, restarted from its ids now and then.

    One draw in ten is of the `preferred` tokens, where one of them is allowed.
    """
    tokenizer, grammars = of
    random = Random(data.draw(st.integers(0, 2**32)))
    favourites = [tokenizer.token_to_id(token) for token in preferred]
    state = grammars.start(grammar)
    ids: list[int] = []
    for _ in range(most):
        allowed = [i for i, is_allowed in enumerate(state.mask()) if is_allowed]
        assert allowed
        if random.random() < 0.1:
            allowed = [i for i in favourites if i in allowed] or allowed
        token_id = random.choice(allowed)
        if token_id in EOS:
            break
        state.take(token_id)
        ids.append(token_id)
        if state.is_complete:
            break
        if random.random() < 0.1:
            state = grammars.start(grammar, ids)  # as after a death
    else:
        raise AssertionError("it does not end")
    return tokenizer.decode(ids, skip_special_tokens=False).encode()
