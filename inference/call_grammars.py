"""How each model family's answers with tool calls are written, as rules of a grammar. Torch-free.

The other half of `call_forms`, which reads them. Marks that are tokens of the vocabulary stand for
themselves in a grammar, by their ids; free text contains them neither as tokens nor spelled out, so
that where a call begins is never in doubt. Strings inside of JSON may spell them, see `call_ends`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from inference.call_forms import (
    CALL_CLOSE,
    CALL_OPEN,
    DEEPSEEK,
    HARMONY,
    HERMES,
    LLAMA,
    MISTRAL,
    THINK_CLOSE,
    THINK_OPEN,
    family_of,
)

HERMES_MARKS = (CALL_OPEN, CALL_CLOSE, THINK_OPEN, THINK_CLOSE)
Vocabulary = Mapping[str, int]
"""The tokens that stand apart from text, with their ids."""


@dataclass(frozen=True, slots=True)
class CallForm:
    """Parts of rules. `@argumentsN` are the arguments of function N.

    `thinking` may come before calls or text (`is_thought_forced`: before forced calls too), `calls`
    is made of calls of one function each, `free` of text and calls, `answer` of what else is written.
    """

    head: Callable[[str], str]
    """What comes before the arguments, by a function's name."""
    tail: str = ""
    opening: str = ""
    between: str = ""
    closing: str = ""
    thinking: str = ""
    is_thought_forced: bool = False
    answer: str = "{}"
    answer_mark: str = ""
    """What stands in front of an answer that calls nothing, as text."""
    text: str = "TEXT"
    """What is written where no function is called."""
    is_text_before: bool = True
    """Whether a call may stand behind text."""
    is_text_between: bool = False
    marks: tuple[str, ...] = ()
    can_repeat: bool = True
    own_rules: str = ""
    in_json: "CallForm | None" = None
    """Of a family that writes arguments in tags: how it writes those that tags cannot say."""

    def calls(self, *, is_single: bool) -> str:
        more = "" if is_single or not self.can_repeat else f" ({self.between} call)*"
        return " ".join(f"{self.opening} call{more} {self.closing}".split())

    def free(self, *, is_single: bool) -> str:
        if self.is_text_between:
            return f"{self.text} (call{'' if is_single else f' {self.text}'}){'?' if is_single else '*'}"
        calls = self.calls(is_single=is_single)
        return f"{self.text} ({calls})?" if self.is_text_before else f"({calls} | {self.text})"

    def call(self, names: Sequence[str]) -> str:
        options = [f"{self.head(n)} @arguments{i} {self.tail}".strip() for i, n in enumerate(names)]
        return " | ".join(options)

    def rules(self) -> str:
        """What the parts are made of."""
        return f"{text_rule(self.marks)}\n{self.own_rules}".strip()


def text_rule(marks: Sequence[str]) -> str:
    """TEXT: any text that spells none of the marks."""
    return "TEXT: /(?s:.*)/" + (f" & {without(map(escaped, marks))}" if marks else "")


def without(patterns: Iterable[str]) -> str:
    """Of a terminal: texts in which none of these is found."""
    return f"~/(?s:.*)({'|'.join(patterns)})(?s:.*)/"


def escaped(text: str) -> str:
    """The text as a regular expression between slashes."""
    return re.escape(text).replace("/", "\\/")


def form_of(chat_template: str, vocabulary: Vocabulary) -> CallForm | None:
    """None: the template has no form for calls, or the vocabulary no tokens for it."""
    family, tokens = family_of(chat_template, has_tools=True), _Tokens(vocabulary)
    try:
        if family is HERMES and CALL_OPEN in chat_template:
            return _in_tags(tokens) if "<function=" in chat_template else _hermes(tokens)
        if family is LLAMA:
            return _LLAMA
        if family is MISTRAL and "[TOOL_CALLS]" in chat_template:
            return _mistral(tokens)
        if family is DEEPSEEK:
            return _deepseek(tokens, is_fenced="```json" in chat_template)
        if family is HARMONY:
            return _harmony(tokens)
    except KeyError:
        pass
    return None


class _Tokens:
    """Marks as a grammar names them. Raises KeyError for what is no token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __getitem__(self, mark: str) -> str:
        return f"<[{self._vocabulary[mark]}]>"

    def has(self, *marks: str) -> bool:
        return all(mark in self._vocabulary for mark in marks)

    def thought(self, opening: str, closing: str) -> str:
        """Thinking between two marks, perhaps; nothing where these are no tokens."""
        return f"({self[opening]} TEXT {self[closing]})?" if self.has(opening, closing) else ""


def _quoted(text: str) -> str:
    return json.dumps(text)  # Lark's strings are JSON's, escapes and all


def _hermes(tokens: _Tokens) -> CallForm:
    """<tool_call>, a line of JSON, </tool_call>."""

    def head(name: str) -> str:
        opening = _quoted(f'\n{{"name": {json.dumps(name)}, "arguments": ')
        return f"{tokens[CALL_OPEN]} {opening}"

    return CallForm(
        head,
        tail=f'"}}\\n" {tokens[CALL_CLOSE]}',
        between='"\\n"',
        thinking=tokens.thought(THINK_OPEN, THINK_CLOSE),
        is_text_between=True,
        marks=HERMES_MARKS,
    )


def _in_tags(tokens: _Tokens) -> CallForm:
    """The same marks around <function=name> and arguments in tags (tagged_calls.py): Qwen3-Coder."""

    def head(name: str) -> str:
        opening = _quoted(f"\n<function={name}>\n")
        return f"{tokens[CALL_OPEN]} {opening}"

    in_json = _hermes(tokens)
    tail = f'"</function>\\n" {tokens[CALL_CLOSE]}'
    return replace(in_json, head=head, tail=tail, in_json=in_json)


_LLAMA = CallForm(
    # Bare JSON, which begins the answer; what begins so is no text.
    lambda name: _quoted(f'{{"name": {json.dumps(name)}, "parameters": '),
    tail='"}"',
    between='"; "',
    text="NO_CALL",
    is_text_before=False,
    own_rules=r'NO_CALL: /(?s:.*)/ & ~/\s*(<\|python_tag\|>)?\s*\{\s*"(type|name)"(?s:.*)/',
)


def _mistral(tokens: _Tokens) -> CallForm:
    """[TOOL_CALLS]name[ARGS]{…} each, or a list of calls where the vocabulary knows no [ARGS]."""
    mark = tokens["[TOOL_CALLS]"]
    thinking = tokens.thought("[THINK]", "[/THINK]")
    marks = ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]")
    if not tokens.has("[ARGS]"):
        return CallForm(
            lambda name: _quoted(f'{{"name": {json.dumps(name)}, "arguments": '),
            tail='"}"',
            opening=rf"{mark} / ?\[/",
            between='", "',
            closing='"]"',
            thinking=thinking,
            marks=marks,
        )
    number = f"({tokens['[CALL_ID]']} /[a-zA-Z0-9]{{9}}/)?" if tokens.has("[CALL_ID]") else ""
    return CallForm(
        lambda name: f"{mark} {_quoted(name)} {number} {tokens['[ARGS]']}",
        thinking=thinking,
        marks=marks,
    )


def _deepseek(tokens: _Tokens, *, is_fenced: bool) -> CallForm:
    """name and JSON between marks (V3.1), or with "function" and a fence around the JSON (V3, R1)."""
    begin, end = tokens["<｜tool▁call▁begin｜>"], tokens["<｜tool▁call▁end｜>"]
    separator = tokens["<｜tool▁sep｜>"]

    def head(name: str) -> str:
        if is_fenced:
            named = _quoted(f"{name}\n```json\n")
            return f'{begin} "function" {separator} {named}'
        return f"{begin} {_quoted(name)} {separator}"

    return CallForm(
        head,
        tail=f'"\\n```" {end}' if is_fenced else end,
        opening=tokens["<｜tool▁calls▁begin｜>"],
        between='"\\n"' if is_fenced else "",
        closing=tokens["<｜tool▁calls▁end｜>"],
        thinking=tokens.thought(THINK_OPEN, THINK_CLOSE),
        marks=(
            THINK_OPEN,
            THINK_CLOSE,
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁sep｜>",
        ),
    )


def _harmony(tokens: _Tokens) -> CallForm:
    """Messages of an assistant, each on a channel; a call ends the answer. The prompt has begun the
    first one."""
    channel, message = tokens["<|channel|>"], tokens["<|message|>"]
    next_ = f'{tokens["<|end|>"]} {tokens["<|start|>"]} "assistant"'
    said = f'({channel} ("analysis" | "commentary") {message} TEXT {next_})'
    final = f'{channel} "final" {message}'
    return CallForm(
        lambda name: (
            f"{channel} {_quoted(f'commentary to=functions.{name} ')}"
            f' {tokens["<|constrain|>"]} "json" {message}'
        ),
        thinking=f"{said}{{0,8}}",
        is_thought_forced=True,
        answer=f"{final} {{}}",
        answer_mark="<|channel|>final<|message|>",
        text=f"{final} TEXT",
        is_text_before=False,
        marks=("<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|start|>", "<|call|>"),
        can_repeat=False,
    )
