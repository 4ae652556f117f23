"""Structured output: grammars that say which tokens may come next. Torch-free.

llguidance compiles JSON schemas and regular expressions to lexers and an Earley parser and computes a
mask of tokens in microseconds; it has limits of its own on size and fuel, and `grammar_costs` more, so
that no schema can stop the engine. Grammars travel as its serialised text.
"""

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

from llguidance import LLMatcher, LLTokenizer
from tokenizers import Tokenizer

from inference.checks import MAX_GRAMMAR_CHARS
from inference.closed_schema import closed
from inference.errors import InvalidParameter
from inference.grammar_costs import LIMITS, check_costs
from inference.plain_schema import not_held_to, plain

_JSON_STYLE: Any = {
    "whitespace_pattern": r"[ \n]{0,16}"
}  # a model in doubt may write blanks for ever


def json_schema_grammar(schema: dict[str, Any], *, param: str = "response_format") -> str:
    """The grammar of JSON documents that satisfy a schema, without what it does not name (see
    `closed_schema`). Raises InvalidParameter.

    Numbers are doubles, as in JavaScript: integers are exact up to 2 to the power of 53.
    """
    try:
        text = json.dumps(closed(plain(schema)), allow_nan=False)
        grammar = LLMatcher.grammar_from_json_schema(text, defaults=_JSON_STYLE)
        return checked(grammar, param, schema)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter(param, f"the schema cannot be used: {error}") from None


def json_object_grammar() -> str:
    """Any JSON object."""
    return json_schema_grammar({"type": "object"})


def regex_grammar(pattern: str, *, param: str = "regex") -> str:
    """All texts that a regular expression matches as a whole. Raises InvalidParameter."""
    return checked(LLMatcher.grammar_from_regex(pattern), param)


def choice_grammar(choices: Sequence[str]) -> str:
    """One of some texts. Raises InvalidParameter."""
    if not choices:
        raise InvalidParameter("choice", "there is nothing to choose from")
    # Lark's strings are JSON's, escapes and all. As one lexeme: as rules, each of which the
    # parser tries at the first token, some thousand used up its fuel.
    lexeme = " | ".join(json.dumps(choice) for choice in choices)
    return checked(LLMatcher.grammar_from_lark(f"start: CHOICE\nCHOICE: {lexeme}"), "choice")


def json_part(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that is plain already as a part of a larger grammar, which calls it `@name`."""
    return {"name": name, "json_schema": {**closed(schema), "x-guidance": _JSON_STYLE}}


def nested_parts(name: str, grammar: str) -> list[dict[str, Any]]:
    """A whole grammar as parts of a larger one, which calls it `@name`."""
    if not grammar.startswith("{"):
        return [{"name": name, "lark_grammar": grammar}]
    first, *rest = json.loads(grammar)["grammars"]
    return [{**first, "name": name}, *rest]


def checked(grammar: str, param: str, schema: Any = None) -> str:
    """The grammar, if it is one and its compilation costs little. Raises InvalidParameter, which names
    places in the schema that it was made of."""
    if len(grammar) > MAX_GRAMMAR_CHARS:
        raise InvalidParameter(param, f"longer than {MAX_GRAMMAR_CHARS // 1024} KiB")
    check_costs(grammar, param)
    if problem := LLMatcher.validate_grammar(grammar, limits=LIMITS):
        unknown = not_held_to(schema) if "Unimplemented keys" in problem else ""
        raise InvalidParameter(param, unknown or problem.strip())
    return grammar


class GrammarGaveUp(RuntimeError):
    """What its author wrote cannot be followed any further; llguidance's own words help nobody."""

    def __init__(self) -> None:
        super().__init__(
            "The answer cannot follow its schema (of response_format, or of a tool): the schema leads"
            " back to itself, or allows too much at the same place."
        )


class Grammars:
    """Starts grammars for one vocabulary, which is read at the first one: a second for a large one."""

    def __init__(self, tokenizer: Tokenizer, *, eos_ids: Collection[int], vocab_size: int) -> None:
        self._source = tokenizer
        self._vocab_size = vocab_size
        # llguidance wants an end of turn. For a model that knows none its first token plays the part
        # and is never allowed; such a text ends where nothing more can follow.
        self._eos_ids = sorted(eos_ids) or [0]
        self._forbidden = () if eos_ids else (0,)
        self._compiled = lru_cache(maxsize=16)(self._compile)

    def start(self, grammar: str, output_ids: Sequence[int] = ()) -> "GrammarState":
        """A text that begins; `output_ids` are of it already. Raises InvalidParameter."""
        matcher = self._compiled(grammar).deep_copy()
        if output_ids and not matcher.consume_tokens(list(output_ids)):
            raise InvalidParameter("grammar", "the answer so far does not follow it")
        return GrammarState(matcher, self._vocab_size, self._forbidden)

    @cached_property
    def _vocabulary(self) -> LLTokenizer:
        num_ids = max(self._vocab_size, self._source.get_vocab_size())
        return LLTokenizer(self._source.to_str(), n_vocab=num_ids, eos_token=self._eos_ids)

    def _compile(self, grammar: str) -> LLMatcher:
        matcher = LLMatcher(self._vocabulary, grammar, log_level=0)
        if matcher.is_error():
            raise InvalidParameter("grammar", matcher.get_error())
        return matcher


class GrammarState:
    """How far a text has come in its grammar."""

    def __init__(
        self, matcher: LLMatcher, vocab_size: int, forbidden: Collection[int] = ()
    ) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size
        self._forbidden = forbidden

    def mask(self) -> bytes:
        """One byte for each token of the vocabulary: 0 where it must not come next.

        Ends of turn are allowed where the text may end. Raises GrammarGaveUp when the grammar has
        used up its fuel.
        """
        mask = self._matcher.compute_logit_bias()
        if self._matcher.is_error():
            raise GrammarGaveUp
        # A model's logits may be fewer or more than its tokenizer's tokens.
        allowed = bytearray(mask[: self._vocab_size].ljust(self._vocab_size, b"\0"))
        for token_id in self._forbidden:
            allowed[token_id] = 0
        return bytes(allowed)

    def masks_along(self, draft: Sequence[int]) -> list[bytes]:
        """The mask here, and those behind the tokens of a draft, as far as the grammar takes them.

        Raises GrammarGaveUp when the grammar has used up its fuel here; further on it only ends there.
        """
        masks = [self.mask()]
        ahead = self.fork() if draft else self
        with suppress(RuntimeError):
            for token_id in draft:
                ahead.take(token_id)
                if ahead.is_complete:
                    break
                masks.append(ahead.mask())
        return masks

    def fork(self) -> "GrammarState":
        """Another state at the same place, to look ahead with."""
        return GrammarState(self._matcher.deep_copy(), self._vocab_size, self._forbidden)

    def take(self, token_id: int) -> None:
        """The token that was drawn under the mask. Raises GrammarGaveUp when it was one too many, and
        RuntimeError for one that the mask forbade."""
        if not self._matcher.consume_token(token_id):
            if self._matcher.is_error():
                raise GrammarGaveUp
            raise RuntimeError("a token that the mask forbade")

    @property
    def is_complete(self) -> bool:
        """Whether nothing but the end can follow."""
        return bool(self._matcher.is_stopped())
