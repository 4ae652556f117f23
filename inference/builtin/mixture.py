"""Which skills make a dialog: settings, order, weights, and the items that scoring asks."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from inference.builtin.dialog import Dialog
from inference.builtin.scene import Scene
from inference.builtin.skills import (
    calculator,
    clock,
    code,
    continuation,
    echo,
    fallback,
    followups,
    functions,
    identity,
    lists,
    memory,
    passages,
    persona,
    poem,
    remarks,
    search,
    smalltalk,
    summary,
    tables,
    title,
)
from inference.builtin.words import Split

Step = Callable[[Scene], None]


@dataclass(frozen=True, slots=True)
class Skill:
    """A way to add turns, what the scene needs before, and how it is used.

    `weight` is its share of training dialogs as the main skill; `passing` its share as a passing
    turn in a dialog about something else (0: never).
    """

    name: str
    add: Step
    weight: float
    passing: float = 0.0
    tool: str | None = None
    goal: float = 0.9


def _documents(scene: Scene) -> None:
    """Questions about passages in the system prompt; the first is the one that scoring checks."""
    books = passages.set_documents(scene)
    passages.ask_library(scene, books)
    if not scene.is_scored:
        for _ in range(scene.rng.randint(4, 9) if scene.is_dense else scene.rng.randrange(3)):
            passages.ask_library(scene, books)
            if scene.rng.random() < 0.3:
                smalltalk.smalltalk(scene)


@contextmanager
def _unscored(scene: Scene) -> Iterator[None]:
    """What is said within is the way to what scoring checks, and no part of it."""
    scored, scene.is_scored = scene.is_scored, False
    yield
    scene.is_scored = scored


def _passing_some(scene: Scene, least: int, most: int) -> None:
    for _ in range(scene.rng.randint(least, most)):
        passing(scene)


def _far_memory(scene: Scene) -> None:
    """Facts, then other matters, then a question about the facts."""
    with _unscored(scene):
        memory.memory(scene)
        _passing_some(scene, 1, 4)
    memory.told_again(scene)


def _changed_persona(scene: Scene) -> None:
    """The system prompt is another now than when the first questions were answered."""
    rng = scene.rng
    with _unscored(scene):
        for _ in range(rng.randint(1, 2)):
            persona.persona(scene)
    scene.messages = [replace(message, is_learnt=False) for message in scene.messages]
    persona.set_persona(scene)
    scene.recalls.clear()
    scene.noted.clear()
    for _ in range(rng.randint(1, 3)):
        persona.persona(scene)


def _titled(scene: Scene) -> None:
    if scene.title is None:
        with _unscored(scene):
            _passing_some(scene, 1, 3)
    title.title(scene)


def _followed(scene: Scene) -> None:
    with _unscored(scene):
        _passing_some(scene, 1, 2)
    followups.followups(scene)


def _summed(scene: Scene) -> None:
    if scene.rng.random() < 0.4:
        with _unscored(scene):
            _passing_some(scene, 1, 4)
    summary.summary(scene)


def _mixed(scene: Scene) -> None:
    for _ in range(3 if scene.is_scored else 1):
        passing(scene)


SKILLS = (
    Skill("smalltalk", smalltalk.smalltalk, 13, 6, goal=0.95),
    Skill("identity", identity.identity, 6, 2, goal=0.95),
    Skill("persona", persona.persona, 5, 1, goal=0.95),
    Skill("changed persona", _changed_persona, 3, goal=0.95),
    Skill("memory", memory.memory, 8, 3, goal=0.95),
    Skill("far memory", _far_memory, 4, goal=0.95),
    Skill("calculator", calculator.calculator, 6, 3, "calculator", 0.95),
    Skill("clock", clock.clock, 4, 2, "clock", 0.95),
    Skill("search", search.search, 7, 1, "search_documents", 0.95),
    Skill("unseen tool", functions.function, 8, 1, goal=0.85),
    Skill("passages", passages.passages, 7),
    Skill("excerpts", passages.excerpts, 7),
    Skill("documents", _documents, 5),
    Skill("title", _titled, 4),
    Skill("summary", _summed, 3),
    Skill("follow-ups", _followed, 3),
    Skill("list", lists.lists, 3, 1),
    Skill("table", tables.tables, 3, 0.5),
    Skill("code", code.code, 3, 1),
    Skill("poem", poem.poem, 2, 1),
    Skill("echo", echo.echo, 7, 2),
    Skill("continuation", continuation.continuation, 2, 0.5),
    Skill("fallback", fallback.fallback, 11, 5),
    Skill("remarks", remarks.remarks, 2, 1),
    Skill("mixture", _mixed, 3),
)
BY_NAME = {skill.name: skill for skill in SKILLS}
_PASSING = [skill for skill in SKILLS if skill.passing]
_PASSING_WEIGHTS = [skill.passing for skill in _PASSING]
_LAST = {"title"}  # these may empty the scene, so nothing follows
_WITH_DOCUMENTS = {
    "smalltalk",
    "identity",
    "persona",
    "memory",
    "calculator",
    "clock",
    "echo",
    "list",
}


def passing(scene: Scene) -> None:
    """One passing turn of some skill that fits the scene."""
    before = len(scene.messages)
    while len(scene.messages) == before:
        skill = scene.rng.choices(_PASSING, _PASSING_WEIGHTS)[0]
        if skill.name == "unseen tool" and not scene.tools:
            continue
        if scene.has_documents and skill.name not in _WITH_DOCUMENTS:
            continue
        skill.add(scene)


@dataclass(frozen=True, slots=True)
class Style:
    """How training dialogs differ from those that are scored.

    `is_short`: about one matter and with few tools, but asked about several times: more of the main
    skills in as many tokens.
    `pieces`: of a vocabulary, to make names from; see `Words`.
    """

    is_short: bool = False
    pieces: tuple[str, ...] = ()


PLAIN = Style()
_REPEATS = {"echo": 3, "memory": 3, "persona": 3, "search": 2, "table": 2, "list": 2, "code": 2}
_REPEATS |= {"smalltalk": 5, "identity": 5, "fallback": 3, "calculator": 3, "clock": 3}
"""How often a short dialog has its skill at most."""


def setting(rng: random.Random, split: Split, skill: Skill, style: Style = PLAIN) -> Scene:
    """A scene with its system prompt and tools, before anyone spoke."""
    scene = Scene(rng, split, style.pieces)
    kind = rng.random()
    if skill.name in ("persona", "changed persona"):
        persona.set_persona(scene) if kind < 0.85 else persona.set_default(scene)
    elif kind < 0.15:
        persona.set_persona(scene)
    elif kind < 0.6:
        persona.set_default(scene)
    if style.is_short and rng.random() < 0.7:
        if skill.tool:
            _offer(scene, {skill.tool}, share=0.0)
    elif skill.tool and rng.random() < 0.85:
        _offer(scene, {skill.tool})
    elif skill.name == "unseen tool" or rng.random() < 0.35:
        _offer(scene, set())
    return scene


def _offer(scene: Scene, needed: set[str], share: float | None = None) -> None:
    """Offer the product's tools and perhaps strangers, in random order."""
    rng, words = scene.rng, scene.words
    own = {"calculator": calculator.tool, "clock": clock.tool, "search_documents": search.tool}
    share = rng.choice((0.0, 0.5, 0.8, 1.0)) if share is None else share
    for name, make in own.items():
        if name in needed or rng.random() < (share * 0.5 if name == "search_documents" else share):
            scene.tools.append(make(words))
    for _ in range(rng.choices((0, 1, 2), (6, 3, 2))[0]):
        stranger = functions.other_tool(scene)
        if not scene.has_tool(stranger["function"]["name"]):
            scene.tools.append(stranger)
    rng.shuffle(scene.tools)


_PLANS = {(0, 0): 5, (0, 2): 3, (1, 1): 2, (2, 3): 2, (1, 0): 2, (0, 5): 1, (3, 9): 0.6}
_LONG_PLANS = {(0, 1): 3, (0, 3): 3, (1, 2): 3, (2, 3): 2, (1, 0): 2, (1, 5): 1, (3, 9): 0.6}
"""Passing turns before and after the main skill, with their weights."""


def training_dialog(
    rng: random.Random, weights: dict[str, float], max_chars: int, style: Style = PLAIN
) -> Dialog:
    """A dialog of one to eight episodes around a main skill."""
    skill = rng.choices(SKILLS, [weights.get(s.name, s.weight) for s in SKILLS])[0]
    scene = setting(rng, "train", skill, style)
    if style.is_short:
        scene.is_dense = True
        for _ in range(rng.randint(1, _REPEATS.get(skill.name, 1))):
            skill.add(scene)
        return scene.dialog(skill.name)
    # A scene with tools costs many tokens before the first word: let more happen in it.
    plans = _LONG_PLANS if scene.tools else _PLANS
    before, after = rng.choices(list(plans), list(plans.values()))[0]
    for _ in range(before):
        passing(scene)
    skill.add(scene)
    for _ in range(0 if skill.name in _LAST else after):
        if sum(len(m.content) for m in scene.messages) > max_chars:
            break
        passing(scene)
    return scene.dialog(skill.name)


def training_dialogs(
    seed: int, weights: dict[str, float], max_chars: int = 5000, style: Style = PLAIN
) -> Iterator[Dialog]:
    """An endless stream of training dialogs, the same for the same arguments."""
    rng = random.Random(seed)
    while True:
        yield training_dialog(rng, weights, max_chars, style)


def score_item(rng: random.Random, skill: Skill) -> Dialog:
    """A held-out dialog in which the turns of one skill are marked as scored."""
    while True:
        scene = setting(rng, "test", skill)
        for _ in range(rng.choices((0, 1, 2, 3), (5, 2, 2, 1))[0]):
            passing(scene)
        scene.is_scored = True
        skill.add(scene)
        made = scene.dialog(skill.name)
        if any(message.is_scored for message in made.messages):
            return made


def score_items(seed: int, skill: Skill, count: int) -> list[Dialog]:
    """Held-out items of one skill."""
    rng = random.Random(f"{seed} {skill.name}")
    return [score_item(rng, skill) for _ in range(count)]
