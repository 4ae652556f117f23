"""Patterns of phrasings, their expansion, the part of them kept for scoring, and people's typing.

A pattern is text with `(a|b)` for a choice, `[a]` for something optional and `{slot}` for a value.
Every expansion counts as one phrasing; those whose hash falls on the held-out sixth are never
used for training. The typing (case, missing marks, typos, politeness) is put on afterwards and
leaves the slots as they are.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from inference.builtin.words import Split, hash_of, is_held_out

_SLOT = re.compile(r"(\{[a-z_0-9]+\})")


def expand(pattern: str) -> list[str]:
    """All texts that a pattern stands for, in order."""
    texts, end = _alternatives(pattern, 0)
    assert end == len(pattern), pattern
    return list(dict.fromkeys(_tidy(text) for text in texts))


def _tidy(text: str) -> str:
    """Close the gaps that left-out options leave; line breaks stay."""
    return re.sub(r" +([.,?!:])", r"\1", re.sub(r" +", " ", text)).strip()


def _alternatives(pattern: str, start: int) -> tuple[list[str], int]:
    done: list[str] = []
    heads = [""]
    position = start
    while position < len(pattern):
        char = pattern[position]
        if char in "([":
            inner, position = _alternatives(pattern, position + 1)
            if char == "[":
                inner = ["", *inner]
            heads = [head + tail for head in heads for tail in inner]
        elif char in ")]":
            break
        elif char == "|":
            done += heads
            heads = [""]
        else:
            heads = [head + char for head in heads]
        position += 1
    return done + heads, position


_SAME_WORDS = """
I have|I've got|I do have; I am|I'm; what is|what's|what would be; who is|who's;
where is|where's; do not|don't; cannot|can't|can not; I would|I'd;
is called|is named|goes by the name of|has the name; called|named;
tell me|let me know|say to me; show me|let me see; give me|get me|hand me;
remember|keep in mind|note; I like|I do like|I quite like; I live|I have my home|I am at home;
I work|I have work; I speak|I can speak|I do speak; I want|I wish|I intend;
I need|I require|I could use; my name|the name of me;
I come from|I originally come from|I do come from;
how long|for how long|how much time; how often|how many times; which|what;
when does|at what time does|what time does; when is|at what time is|what time is;
where does|at which place does|in what place does;
where are|at which place are|in what place are; where do|at which place do;
where can|at which place can; who|which person; find|look for|search for;
write|compose|put together; create|make|set up; add|put|insert; send|mail|deliver; set|put;
turn|switch; open|bring up; start|begin; convert|change|turn; book|reserve; because of|due to;
of mine|that I have; for years|for a long time|since long ago; now|right now|at the moment;
again|once more|one more time; every|each; by the way|incidentally; a list of|some
"""
"""Words that say the same, more or less. People's grammar is no better than that."""
_SAME = tuple(tuple(words.strip().split("|")) for words in _SAME_WORDS.split(";"))
_ENOUGH = 6


@cache
def varied(pattern: str) -> str:
    """A pattern of few phrasings with some of its words replaced: what stands alone is either never
    trained or never scored, and nobody learns a construction from one example."""
    if any(mark in pattern for mark in "([|") or len(pattern.split()) < 2:
        return pattern
    num = 1
    for same in _SAME:
        found = re.search(rf"(?<![\w'{{]){re.escape(same[0])}(?![\w'}}])", pattern)
        if found and num < _ENOUGH and not _inside(pattern, found.start()):
            head, tail = pattern[: found.start()], pattern[found.end() :]
            pattern = f"{head}({'|'.join(same)}){tail}"
            num *= len(same)
    return pattern


def _inside(pattern: str, place: int) -> bool:
    """Whether a place lies within a choice that was put in before."""
    return pattern.count("(", 0, place) > pattern.count(")", 0, place)


def normal(text: str) -> str:
    """The form that decides the split: lower case, slots kept, no punctuation."""
    return " ".join(re.sub(r"[^\w\s{}+*/^%-]", "", text.lower()).split())


MORE = "+"
"""Among the patterns of a group: those behind it are company for the ones before, from which scoring
takes what it can. So a group can be widened, and what is scored stays as usual as it was."""
UNSCORED = "++"
"""Those behind it are company as well, but scoring takes none of them: what it asks stays the same."""
Groups = tuple[tuple[str, ...], ...]


@cache
def split_of(patterns: tuple[str, ...]) -> dict[Split, Groups]:
    """The phrasings of a group of patterns by split, grouped by pattern; none is in both.

    A pattern keeps some of its phrasings in training: a construction that was never seen cannot be
    understood, only guessed, by a model that knows no other English.
    A group too small to lose a sixth by chance gives the one phrasing with the lowest hash.
    """
    if UNSCORED in patterns:
        place = patterns.index(UNSCORED)
        return _with_company(split_of(patterns[:place]), patterns[place + 1 :])
    num_usual = patterns.index(MORE) if MORE in patterns else len(patterns)
    patterns = tuple(varied(p) for p in patterns if p != MORE)
    texts = sorted({t for p in patterns for t in expand(p)}, key=lambda t: (hash_of(normal(t)), t))
    held_out = {t for t in texts if is_held_out(normal(t))}
    for own in map(set, map(expand, patterns)):
        if own <= held_out:
            held_out -= own
    held_out = held_out or {texts[0]}
    if len(held_out) > len(texts) / 2:
        held_out = set(texts[: len(texts) // 3 or 1])
    train = tuple(tuple(t for t in expand(p) if t not in held_out) for p in patterns)
    test = tuple(tuple(t for t in expand(p) if t in held_out) for p in patterns)
    usual = tuple(g for g in test[:num_usual] if g)
    return {"train": tuple(g for g in train if g), "test": usual or tuple(g for g in test if g)}


def _with_company(split: dict[Split, Groups], patterns: tuple[str, ...]) -> dict[Split, Groups]:
    """A split with more to train on: what neither the hash nor the split keeps for scoring."""
    kept = {normal(text) for texts in split["test"] for text in texts}
    more = (
        tuple(t for t in expand(p) if not is_held_out(normal(t)) and normal(t) not in kept)
        for p in map(varied, patterns)
    )
    return {"train": (*split["train"], *filter(None, more)), "test": split["test"]}


def pick(rng: random.Random, split: Split, patterns: Sequence[str]) -> str:
    """A random phrasing: first a pattern, then an expansion of it, so long patterns do not win."""
    return rng.choice(rng.choice(split_of(tuple(patterns))[split]))


@dataclass(frozen=True, slots=True)
class Typing:
    """How one person types, for a whole conversation."""

    is_lower: bool = False
    drops_marks: bool = False
    typo_rate: float = 0.0
    is_chatty: bool = False


def draw_typing(rng: random.Random, split: Split) -> Typing:
    """A random way of typing. Scoring has no typos: they could change what is asked."""
    return Typing(
        is_lower=rng.random() < 0.35,
        drops_marks=rng.random() < 0.35,
        typo_rate=rng.choice((0.0, 0.0, 0.02, 0.06)) if split == "train" else 0.0,
        is_chatty=rng.random() < 0.25,
    )


_OPENERS = (
    "Hey, ", "Ok, ", "So, ", "Well, ", "Please, ", "Quick question: ", "Now, ", "And ", "Hello. ",
    "Hi, ", "Hi there, ", "Good morning. ", "One more thing: ", "Hey Vitrine, ", "Thanks. ",
    "Great. ", "Alright, ", "Sorry, ", "Um, ", "Next: ", "Okay then, ", "Hello, ", "Also, ",
)  # fmt: skip
_CLOSERS = (" please", ", please", " thanks", " Thank you.", ", thanks", " pls", " now", " :)")


def typed(rng: random.Random, typing: Typing, template: str, *, wrap: bool = True) -> str:
    """Put a way of typing on a phrasing; slots stay untouched."""
    if wrap and typing.is_chatty and rng.random() < 0.5:
        wrapped = _wrapped(rng, template)
        # "Say something funny" with a "please" behind it is another phrasing, and may be a held-out one.
        if is_held_out(normal(template)) or not is_held_out(normal(wrapped)):
            template = wrapped
    parts = _SLOT.split(template)
    return "".join(
        p if i % 2 else _mistyped(rng, typing, p, i == len(parts) - 1) for i, p in enumerate(parts)
    )


def _wrapped(rng: random.Random, template: str) -> str:
    if rng.random() < 0.6:
        head = template if template[:2] in ("I ", "I'") else template[:1].lower() + template[1:]
        return rng.choice(_OPENERS) + head
    stem = template.rstrip(".?!")
    return stem + rng.choice(_CLOSERS) + template[len(stem) :]


def _mistyped(rng: random.Random, typing: Typing, text: str, is_last: bool) -> str:
    if typing.is_lower:
        text = text.lower()
    if typing.drops_marks:
        text = text.replace("'", "")
        text = text.rstrip(".?!") if is_last else text
    if typing.typo_rate:
        text = re.sub(r"[A-Za-z]{4,}", lambda m: _typo(rng, m[0], typing.typo_rate), text)
    return text


def _typo(rng: random.Random, word: str, rate: float) -> str:
    if rng.random() >= rate * 3:
        return word
    place = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind == 1:
        return word[:place] + word[place + 1 :]
    return word[:place] + word[place] + word[place:]


_ARTICLE_SLOT = re.compile(r"(?<![^\s(])([Aa]) (\{[a-z_0-9]+\})")


def fill(template: str, **values: object) -> str:
    """Put values into the slots, "a" becoming "an"; a slot without a value is our own bug."""
    return fill_from(template, values)


def fill_from(template: str, values: Mapping[str, object]) -> str:
    """The same, from a mapping, which is asked for what stands in the template."""

    def value(slot: str) -> str:
        return str(values[slot[1:-1]])

    def article(found: re.Match[str]) -> str:
        return f"{found[1]}{'n' if value(found[2])[:1] in 'aeio' else ''} {found[2]}"

    return _SLOT.sub(lambda m: value(m[0]), _ARTICLE_SLOT.sub(article, template))
