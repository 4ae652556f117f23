"""A conversation in the making: who speaks, what is offered, what was said.

Skills add turns to a scene; `mixture.py` prepares it and decides which skills come in which order.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.builtin.dialog import Call, Dialog, Message, Tool, name_of
from inference.builtin.phrasing import Typing, draw_typing, fill, pick, typed
from inference.builtin.words import Split, Words


@dataclass(frozen=True, slots=True)
class Persona:
    """Who the system prompt says the assistant is; `about` maps a fact's kind to its sentence."""

    name: str | None
    who: str
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recall:
    """A fact told in this conversation: how it is asked for and the answer."""

    questions: tuple[str, ...]
    answer: str
    values: Mapping[str, object]


DEFAULT_PERSONA = Persona("Vitrine", "I am Vitrine, a helpful assistant.")


class Scene:
    """A growing list of messages and what the skills must know about the setting."""

    def __init__(self, rng: random.Random, split: Split, pieces: Sequence[str] = ()) -> None:
        self.rng = rng
        self.split = split
        self.words = Words(rng, split, pieces)
        self.typing: Typing = draw_typing(rng, split)
        self.system = ""
        self.persona = DEFAULT_PERSONA
        self.today: str | None = None
        self.user_name: str | None = None
        self.recalls: dict[str, Recall] = {}
        self.noted: dict[str, str] = {}  # what the user told about themselves: "you live in Oslo"
        self.tools: list[Tool] = []
        self.has_documents = False
        self.is_scored = False
        self.is_dense = False  # whether much is asked of what it took long to set up
        self.topic: str | None = None  # of the first user message, for titles
        self.title: str | None = None
        self.topics: list[str] = []  # all topics in order, for summaries and follow-ups
        self.messages: list[Message] = []

    def has_tool(self, name: str) -> bool:
        return any(name_of(tool) == name for tool in self.tools)

    def phrase(self, patterns: Sequence[str], *, wrap: bool = True, **values: object) -> str:
        """A message drawn from patterns as this user types it, not yet said."""
        template = pick(self.rng, self.split, patterns)
        return fill(typed(self.rng, self.typing, template, wrap=wrap), **values).strip()

    def ask(self, patterns: Sequence[str], *, wrap: bool = True, **values: object) -> str:
        """Add a user message drawn from patterns; returns its text."""
        return self.user(self.phrase(patterns, wrap=wrap, **values))

    def user(self, text: str) -> str:
        self.messages.append(Message("user", text))
        return text

    def about(self, topic: str | None, title: str | None = None) -> None:
        """Note what the latest user message is about; the first one names the conversation.

        A topic is a title as it was typed: whoever shows it writes its first letter large.
        """
        if self.title is None:
            self.topic = topic
            self.title = title or topic or "Small talk"
        if topic and topic not in self.topics:
            self.topics.append(topic)

    def recall(self, key: str, questions: Sequence[str], answer: str, **values: object) -> None:
        """Note a fact that may be asked for later; a newer one of the same key replaces it."""
        self.recalls[key] = Recall(tuple(questions), answer, values)

    def answer(self, text: str, *, also: Sequence[str] = ()) -> None:
        self.messages.append(Message("assistant", text, None, tuple(also), self.is_scored))

    def cut_answer(self, text: str) -> None:
        """An answer that broke off: part of the prompt, no example."""
        self.messages.append(Message("assistant", text, is_learnt=False))

    def call(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.messages.append(Message("assistant", "", Call(name, arguments), (), self.is_scored))

    def result(self, text: str) -> None:
        self.messages.append(Message("tool", text))

    def dialog(self, skill: str) -> Dialog:
        head = [Message("system", self.system)] if self.system else []
        return Dialog(skill, (*head, *self.messages), tuple(self.tools))


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def a(noun: str) -> str:
    """The noun with its indefinite article, by its first letter."""
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def joined(items: Sequence[str], word: str = "and") -> str:
    """An English enumeration: a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"
