"""How a guard model's answer is read: its verdict, how sure it is of it, and what it names.

A guard answers with a verdict and, behind an unsafe one, with its categories. How sure it is stands in
the probabilities of the words that it could have begun the verdict with. Pure: knows no engine.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moderation.categories import Scores

Categories = tuple[str, ...]


class NoVerdict(ValueError):
    """The answer is none of a guard's. Carries its beginning."""


@dataclass(frozen=True, slots=True)
class Step:
    """A word or a part of one that was written, and what could have stood there, with probabilities."""

    text: str
    likely: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Question:
    """What a guard is asked about a text. `arguments` are its chat template's; `about` are categories
    that a yes stands for, where the question names what it is about."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    about: Categories = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`unsafe` is a probability, `is_safe` what was written, at step `at`, and `named` the categories
    behind it."""

    unsafe: float
    is_safe: bool
    at: int
    named: Categories


@dataclass(frozen=True, slots=True)
class Family:
    """`lead` stands in front of the verdict, which is one of `verdicts`, each of which counts as so
    unsafe. Behind it `pattern` finds words of `meanings`. `insisted` is an unsafe verdict, up to where
    its categories begin; "" where none follow."""

    name: str
    verdicts: Mapping[str, float]
    lead: str = r"\s*"
    pattern: str = ""
    meanings: Mapping[str, Categories] = field(default_factory=dict)
    questions: tuple[Question, ...] = (Question(),)
    insisted: str = ""
    max_tokens: int = 1

    @property
    def nothing(self) -> Scores:
        """Of a text that holds nothing: all categories that the family can tell."""
        asked = [name for question in self.questions for name in question.about]
        return dict.fromkeys([*asked, *(n for own in self.meanings.values() for n in own)], 0.0)

    def verdict(self, steps: Sequence[Step]) -> Verdict:
        """Raises NoVerdict."""
        said = ""
        for at, step in enumerate(steps):
            if step.text.strip() and re.fullmatch(self.lead, said):
                meant = self._meant(step.text)
                if not meant:
                    break
                rest = "".join(one.text for one in steps[at:])
                is_safe = not self.verdicts[meant[0]]
                return Verdict(self._unsafe(step.likely), is_safe, at, self.named(rest))
            said += step.text
        raise NoVerdict("".join(step.text for step in steps)[:100])

    def named(self, text: str) -> Categories:
        """Our categories for those that a text lists."""
        words = re.findall(self.pattern, text) if self.pattern else []
        return tuple(dict.fromkeys(name for word in words for name in self.meanings.get(word, ())))

    def _unsafe(self, likely: Mapping[str, float]) -> float:
        weighed = {
            word: sum(share for text, share in likely.items() if word in self._meant(text))
            for word in self.verdicts
        }
        total = sum(weighed.values())
        return sum(self.verdicts[word] * share for word, share in weighed.items()) / total

    def _meant(self, text: str) -> list[str]:
        """The verdict that a token is, or begins."""
        begun = text.strip()
        return [word for word in self.verdicts if begun and word.startswith(begun)]
