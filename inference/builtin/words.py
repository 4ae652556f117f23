"""Draws words, names, numbers and made-up words; training and scoring never share one.

A sixth of every list, chosen by a hash of the word, is kept for scoring (`split="test"`). Made-up
words are drawn until their hash falls on the right side, so they are disjoint as well. Numbers are
split the same way from 100 up; smaller ones are too few to keep apart.
"""

import hashlib
import random
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal

from inference.builtin import lexicon

Split = Literal["train", "test"]

HELD_OUT_ONE_IN = 6


@lru_cache(maxsize=1 << 16)  # made-up words come without end
def hash_of(text: str) -> int:
    """A 32-bit hash of a word or phrasing; case and outer space do not matter."""
    return int.from_bytes(hashlib.sha256(text.strip().lower().encode()).digest()[:4], "big")


def is_held_out(text: str) -> bool:
    """Whether a word or phrasing is kept for scoring."""
    return hash_of(text) % HELD_OUT_ONE_IN == 0


@cache
def _listed(name: str) -> tuple[str, ...]:
    raw: str = getattr(lexicon, name)
    if name == "TOPICS":
        return tuple(topic for topic in raw.replace("\n", "").split("|") if topic)
    return tuple(dict.fromkeys(word.replace("-", " ") for word in raw.split()))


@cache
def words_of(name: str, split: Split) -> tuple[str, ...]:
    """The part of a list of `lexicon` that belongs to a split."""
    return tuple(word for word in _listed(name) if is_held_out(word) == (split == "test"))


@cache
def timezones() -> dict[str, str]:
    """City or country to IANA zone. Shared by both splits: a zone is knowledge, not copying."""
    pairs = dict(pair.split("=") for pair in lexicon.TIMEZONES.split())
    return {**pairs, **lexicon.LONG_TIMEZONES}


def plural(noun: str) -> str:
    """The regular English plural."""
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


_ONSETS = tuple(lexicon.ONSETS.split())
_VOWELS = tuple(lexicon.VOWELS.split())
_CODAS = [
    *[""] * 50,
    *[
        "b",
        "d",
        "ck",
        "ft",
        "g",
        "l",
        "ld",
        "ll",
        "lm",
        "m",
        "mp",
        "n",
        "nd",
        "ng",
        "nt",
        "p",
        "r",
        "rd",
        "rk",
        "rn",
        "s",
        "sk",
        "ss",
        "st",
        "t",
        "x",
        "z",
    ],
]
"""Half of all syllables are open."""


_COPIED = {"THINGS", "ADJECTIVES", "ANIMALS", "FOODS", "PLACES", "JOBS", "HOBBIES", "TOPICS"}
"""Lists of which nothing is to be known but how to copy one."""
_COPIED_SHARE = 0.3


class Words:
    """A stream of random words of one split."""

    def __init__(self, rng: random.Random, split: Split, pieces: Sequence[str] = ()) -> None:
        self.rng = rng
        self.split = split
        self.pieces = pieces
        """Of a vocabulary: with them names are mostly made up, and half of those from pieces. So every
        token is copied now and then, and nothing is gained by knowing the lists by heart."""
        self._coined_share = 0.6 if pieces else 0.25

    def choice(self, name: str) -> str:
        if self.pieces and name in _COPIED and self.rng.random() < _COPIED_SHARE:
            return self.coined()
        return self.rng.choice(words_of(name, self.split))

    def sample(self, name: str, count: int) -> list[str]:
        return self.rng.sample(words_of(name, self.split), count)

    def _fresh(self, draw: str) -> bool:
        return is_held_out(draw) == (self.split == "test")

    def coined(self) -> str:
        """A made-up lower-case word of one to four syllables, or of one to three pieces."""
        while True:
            if self.pieces and self.rng.random() < 0.5:
                word = "".join(self.rng.choices(self.pieces, k=self.rng.randint(1, 3)))
                if 3 <= len(word) <= 14 and self._fresh(word):
                    return word
                continue
            syllables = self.rng.choices((1, 2, 3, 4), (2, 6, 3, 1))[0]
            word = "".join(
                self.rng.choice(_ONSETS) + self.rng.choice(_VOWELS) + self.rng.choice(_CODAS)
                for _ in range(syllables)
            )
            if 3 <= len(word) <= 14 and self._fresh(word):
                return word

    def code(self) -> str:
        """An identifier such as KX-4821, a7f3 or 21B."""
        rng = self.rng
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        while True:
            kind = rng.randrange(4)
            head = "".join(rng.choices(letters, k=rng.randint(1, 4)))
            tail = "".join(rng.choices("0123456789", k=rng.randint(2, 5)))
            mixed = "".join(rng.choices("abcdef0123456789", k=rng.randint(4, 8)))
            text = (f"{head}-{tail}", f"{head}{tail}", mixed, f"{tail}{head[0]}")[kind]
            if self._fresh(text):
                return text

    def number(self, low: int = 2, high: int = 9999) -> int:
        """An integer, spread evenly over the number of digits rather than over the values."""
        while True:
            digits = self.rng.randint(len(str(low)), len(str(high)))
            value = self.rng.randint(max(low, 10 ** (digits - 1)), min(high, 10**digits - 1))
            if value < 100 or self._fresh(f"n{value}") or low == high:
                return value

    def first_name(self) -> str:
        rng = self.rng
        name = (
            self.coined().capitalize()
            if rng.random() < self._coined_share
            else self.choice("NAMES")
        )
        return name.lower() if rng.random() < 0.06 else name

    def full_name(self) -> str:
        surname = self.choice("SURNAMES") if self.rng.random() < 0.7 else self.coined().capitalize()
        return f"{self.first_name()} {surname}"

    def proper(self) -> str:
        """A name of a product, company or place, mostly made up."""
        rng = self.rng
        word = self.coined().capitalize()
        kind = rng.randrange(7)
        if kind == 0:
            return f"{word} {rng.choice(('Works', 'Labs', 'Group', 'House', 'Systems', 'Foods'))}"
        if kind == 1:
            return f"{word} {self.number(2, 9000)}"
        if kind == 2:
            return f"{self.choice('ADJECTIVES').capitalize()} {self.choice('THINGS').capitalize()}"
        if kind == 3:
            return f"{self.coined().capitalize()} {word}"
        return word

    def city(self) -> str:
        if self.rng.random() < self._coined_share:
            return self.coined().capitalize()
        return self.choice("CITIES")

    def noun(self) -> str:
        """A lower-case noun, sometimes made up."""
        rng = self.rng
        if rng.random() < self._coined_share:
            return self.coined()
        return self.choice(rng.choice(("THINGS", "THINGS", "ANIMALS", "PLACES", "JOBS")))

    def phrase(self, low: int = 1, high: int = 5) -> str:
        """A run of unrelated words, numbers and codes: raw matter for copying."""
        return " ".join(self.token() for _ in range(self.rng.randint(low, high)))

    def token(self) -> str:
        rng = self.rng
        kind = rng.randrange(12)
        if kind < 3:
            return self.coined()
        if kind == 3:
            return self.code()
        if kind == 4:
            return str(self.number(1, 99999))
        if kind == 5:
            return self.first_name()
        if kind == 6:
            return self.choice("VERBS").split(":")[rng.randrange(2)]
        if kind == 7:
            return self.coined().capitalize()
        return self.choice(("THINGS", "ADJECTIVES", "FOODS", "ANIMALS")[kind - 8])

    def topic(self) -> str:
        """What someone may ask about: a listed topic or a noun phrase, one to five words."""
        rng = self.rng
        kind = rng.randrange(8)
        if kind < 3:
            return self.choice("TOPICS")
        if kind == 3:
            return f"{self.choice('ADJECTIVES')} {plural(self.choice('THINGS'))}"
        if kind == 4:
            return f"the {self.choice('THINGS')} in the {self.choice('PLACES')}"
        if kind == 5:
            return self.coined() if rng.random() < 0.5 else self.proper()
        if kind == 6:
            return f"{self.choice('HOBBIES')} in {self.city()}"
        return f"{plural(self.choice('ANIMALS'))} and {plural(self.choice('ANIMALS'))}"

    def clock_time(self) -> str:
        rng = self.rng
        hour, minute = rng.randrange(24), rng.randrange(60)
        if rng.random() < 0.3:
            return f"{hour % 12 or 12} {'am' if hour < 12 else 'pm'}"
        return (
            f"{hour}:{minute:02d}" if rng.random() < 0.5 else f"{hour:02d}:{minute // 15 * 15:02d}"
        )

    def date(self) -> str:
        rng = self.rng
        day, month = rng.randint(1, 28), rng.choice(lexicon.MONTHS)
        year = rng.randint(1900, 2039)
        return rng.choice(
            (f"{day} {month}", f"{day} {month} {year}", f"{month} {day}", rng.choice(lexicon.DAYS))
        )

    def amount(self) -> str:
        rng = self.rng
        value = self.number(2, 2000)
        kind = rng.randrange(5)
        if kind == 0:
            return f"{value} euros"
        if kind == 1:
            return f"${value}.{rng.randint(10, 99)}"
        if kind == 2:
            return f"{value} {rng.choice(('kilometres', 'metres', 'kilograms', 'litres', 'miles'))}"
        if kind == 3:
            return f"{value} {rng.choice(('days', 'hours', 'weeks', 'minutes', 'months', 'years'))}"
        return str(value)
