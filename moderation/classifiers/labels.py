"""What the labels of well-known classifiers, guards and servers mean in our categories."""

import re
from collections.abc import Mapping, Sequence

from moderation.categories import CATEGORIES

_ATTACKS = ("prompt_injection", "jailbreak")
_HARMLESS = """
    safe ok okay benign legit legitimate neutral normal none clean harmless not_harmful nothate not_hate
    non_hate no_hate nontoxic non_toxic not_toxic not_offensive non_offensive not_offensive_language
    sfw not_nsfw no_injection not_injection not_jailbreak
"""
_MEANINGS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_HARMLESS.split(), ()),
    # Jigsaw's, as toxic-bert and its relatives have them. Swearing is none of our categories.
    "toxic": ("harassment",),
    "toxicity": ("harassment",),
    "severe_toxic": ("harassment",),
    "severe_toxicity": ("harassment",),
    "obscene": (),
    "threat": ("harassment/threatening", "violence"),
    "insult": ("harassment",),
    "identity_hate": ("hate",),
    "identity_attack": ("hate",),
    "sexual_explicit": ("sexual",),
    # hate speech
    "hateful": ("hate",),
    "hate_speech": ("hate",),
    "offensive": ("harassment",),
    "offensive_language": ("harassment",),
    "abusive": ("harassment",),
    # OpenAI's set of 2022, as KoalaAI/Text-Moderation has it
    "s": ("sexual",),
    "h": ("hate",),
    "v": ("violence",),
    "hr": ("harassment",),
    "sh": ("self-harm",),
    "s3": ("sexual/minors",),
    "h2": ("hate/threatening",),
    "v2": ("violence/graphic",),
    # attacks on assistants
    "injection": ("prompt_injection",),
    "indirect_injection": ("prompt_injection",),
    "malicious": _ATTACKS,
    "attack": _ATTACKS,
    # nudity and the like
    "nsfw": ("sexual",),
    "porn": ("sexual",),
    "explicit": ("sexual",),
    # other words for ours: Mistral's endpoint, personal data
    "hate_and_discrimination": ("hate", "harassment"),
    "violence_and_threats": ("violence",),
    "dangerous_and_criminal_content": ("illicit",),
    "dangerous": ("illicit",),
    "criminal": ("illicit",),
    "selfharm": ("self-harm",),
    "suicide": ("self-harm",),
    "pii": ("personal_data",),
}
_OURS = {re.sub(r"\W+", "_", name): (name,) for name in CATEGORIES}
# Whose labels say nothing by themselves.
_OF_MODELS: Sequence[tuple[str, Mapping[str, tuple[str, ...]]]] = (
    (r"prompt-guard-2", {"label_0": (), "label_1": _ATTACKS}),
    (r"twitter-roberta-base-hate", {"label_0": (), "label_1": ("hate",)}),
    (r"twitter-roberta-base-offensive", {"label_0": (), "label_1": ("harassment",)}),
)


def meaning_of(label: str, model: str = "") -> tuple[str, ...] | None:
    """The categories that a label stands for; an empty tuple where that is nothing that is moderated,
    None where it is not known. `model` helps with labels such as LABEL_1."""
    name = re.sub(r"\W+", "_", label.strip()).lower()
    for pattern, meanings in _OF_MODELS:
        if name in meanings and re.search(pattern, model, re.IGNORECASE):
            return meanings[name]
    return _OURS.get(name, _MEANINGS.get(name))
