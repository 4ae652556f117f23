"""What is judged: OpenAI's moderation taxonomy, and what documents and tools bring besides."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

Scores = Mapping[str, float]
"""A probability for each category."""

DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "harassment": "Insults, bullies or degrades a person.",
        "harassment/threatening": "Harasses a person and threatens violence or serious harm.",
        "hate": "Expresses or incites hate of people for what they are: origin, religion, sex …",
        "hate/threatening": "Hates people for what they are and threatens or calls for violence.",
        "illicit": "Asks for, or gives, help with crime or with harming others.",
        "illicit/violent": "Asks for, or gives, help with violence or with getting weapons.",
        "self-harm": "Promotes, encourages or depicts suicide, self-injury or eating disorders.",
        "self-harm/intent": "The writer wants to hurt or kill themself.",
        "self-harm/instructions": "Asks for, or gives, ways to hurt or kill oneself.",
        "sexual": "Meant to arouse, or offers sexual services; not education or health.",
        "sexual/minors": "Sexual content that includes somebody under eighteen.",
        "violence": "Wishes, threatens, celebrates or depicts death, injury or violence.",
        "violence/graphic": "Depicts death, injury or violence in gory detail.",
        "prompt_injection": "Tries to replace the instructions of the assistant, or to read them.",
        "jailbreak": "Tries to talk the assistant out of its rules on harmful content.",
        "secrets": "Holds keys, passwords or tokens.",
        "personal_data": "Holds data that identify a person: numbers of cards, accounts, phones …",
    }
)
CATEGORIES: tuple[str, ...] = tuple(DESCRIPTIONS)

INJECTION_CATEGORIES: tuple[str, ...] = ("prompt_injection", "jailbreak")
RULE_CATEGORIES: tuple[str, ...] = ("secrets", "personal_data")
"""These have a form that rules find; no classifier is trained for them."""
UNSAFE_CATEGORIES: tuple[str, ...] = tuple(
    name for name in CATEGORIES if name not in (*INJECTION_CATEGORIES, *RULE_CATEGORIES)
)
"""What harms people by its content. An attack on the assistant, or a secret, is another matter."""
HEAD_CATEGORIES: tuple[str, ...] = (*UNSAFE_CATEGORIES, *INJECTION_CATEGORIES)


def parent(category: str) -> str | None:
    """`hate` of `hate/threatening`. What belongs to a category belongs to its parent as well."""
    name, separator, _ = category.partition("/")
    return name if separator else None


def worst(scores: Sequence[Scores]) -> Scores:
    """For each category the highest probability, as of the windows of a text, or by several classifiers,
    each of which knows some categories."""
    if len(scores) == 1:
        return scores[0]
    found: dict[str, float] = {}
    for one in scores:
        for name, score in one.items():
            found[name] = max(score, found.get(name, 0.0))
    return found


def with_parents(scores: Scores) -> Scores:
    """Each category at least as likely as the kinds of it."""
    found = dict(scores)
    for name, score in scores.items():
        if over := parent(name):
            found[over] = max(score, found.get(over, 0.0))
    return found
