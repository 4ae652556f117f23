"""Families of guard models: what they are asked, and what their words mean in our categories."""

import re
from collections.abc import Mapping

from moderation.classifiers.guard_verdicts import Categories, Family, Question

# --- Llama Guard ------------------------------------------------------------------------------------

# By their names: their numbers differ from one version to the next. What is left out is not moderated.
_LLAMA_NAMES: Mapping[str, Categories] = {
    "violent crimes": ("violence", "illicit/violent"),
    "non-violent crimes": ("illicit",),
    "sex crimes": ("sexual", "illicit"),
    "sex-related crimes": ("sexual", "illicit"),
    "child exploitation": ("sexual/minors",),
    "child sexual exploitation": ("sexual/minors",),
    "defamation": ("harassment",),
    "privacy": ("personal_data",),
    "indiscriminate weapons": ("illicit/violent",),
    "hate": ("hate",),
    "self-harm": ("self-harm",),
    "suicide & self-harm": ("self-harm",),
    "sexual content": ("sexual",),
    "code interpreter abuse": ("illicit",),
}
_LLAMA_LINE = re.compile(r"\b(S\d{1,2})\s*:\s*([A-Za-z][A-Za-z &-]+?)\s*\.?\s*(?:\\n|\n|<|'|\")")
# Of version 3, for templates that build their list: https://github.com/meta-llama/PurpleLlama
_LLAMA_3 = (
    *("violent crimes", "non-violent crimes", "sex-related crimes", "child sexual exploitation"),
    *("defamation", "specialized advice", "privacy", "intellectual property"),
    *("indiscriminate weapons", "hate", "suicide & self-harm", "sexual content", "elections"),
    "code interpreter abuse",
)


def llama_guard(chat_template: str) -> Family:
    """ "safe", or "unsafe" and the numbers of categories, as the template lists them."""
    listed = {number: name.lower() for number, name in _LLAMA_LINE.findall(chat_template)}
    listed = listed or {f"S{at}": name for at, name in enumerate(_LLAMA_3, 1)}
    return Family(
        name="llamaguard",
        verdicts={"safe": 0.0, "unsafe": 1.0},
        pattern=r"S\d{1,2}",
        meanings={number: _LLAMA_NAMES.get(name, ()) for number, name in listed.items()},
        insisted="unsafe\n",
        max_tokens=32,
    )


# --- ShieldGemma ------------------------------------------------------------------------------------

_SHOULD_NOT = "The prompt shall not contain or seek generation of content that"
# Source: the model card of google/shieldgemma-2b. Other wordings cost accuracy.
SHIELD_GEMMA = Family(
    name="shieldgemma",
    verdicts={"No": 0.0, "Yes": 1.0},
    questions=(
        Question(
            {
                "guideline": f'"No Dangerous Content": {_SHOULD_NOT} harms oneself and/or others (e.g.,'
                " accessing or building firearms and explosive devices, promotion of terrorism,"
                " instructions for suicide)."
            },
            ("illicit",),
        ),
        Question(
            {
                "guideline": f'"No Harassment": {_SHOULD_NOT} is malicious, intimidating, bullying, or'
                " abusive content targeting another individual (e.g., physical threats, denial of"
                " tragic events, disparaging victims of violence)."
            },
            ("harassment",),
        ),
        Question(
            {
                "guideline": f'"No Hate Speech": {_SHOULD_NOT} targets identity and/or protected'
                " attributes (e.g., racial slurs, promotion of violence, or discrimination based on"
                " protected attributes)."
            },
            ("hate",),
        ),
        Question(
            {
                "guideline": f'"No Sexually Explicit Information": {_SHOULD_NOT} contains references to'
                " sexual acts or other lewd content (e.g., sexually explicit text). Content that is"
                " meant for scientific or educational purposes is allowed."
            },
            ("sexual",),
        ),
    ),
)

# --- Qwen3Guard -------------------------------------------------------------------------------------

_QWEN_NAMES: Mapping[str, Categories] = {
    "Violent": ("violence", "illicit/violent"),
    "Non-violent Illegal Acts": ("illicit",),
    "Sexual Content or Sexual Acts": ("sexual",),
    "PII": ("personal_data",),
    "Suicide & Self-Harm": ("self-harm",),
    "Unethical Acts": ("harassment", "hate"),  # insults and discrimination, in one
    "Jailbreak": ("jailbreak",),
}
QWEN_GUARD = Family(
    name="qwen3guard",
    verdicts={"Safe": 0.0, "Controversial": 0.5, "Unsafe": 1.0},
    lead=r"\s*Safety:\s*",
    pattern="|".join(map(re.escape, _QWEN_NAMES)),
    meanings=_QWEN_NAMES,
    insisted=" Unsafe\nCategories:",
    max_tokens=48,
)

FAMILIES = ("llamaguard", "shieldgemma", "qwen3guard")


def family_of(model: str, chat_template: str, named: str = "") -> Family | None:
    """By what the operator says, by the chat template, or by the model's name; None: it is no guard."""
    match named or _by_template(chat_template) or _by_name(model):
        case "llamaguard":
            return llama_guard(chat_template)
        case "shieldgemma":
            return SHIELD_GEMMA
        case "qwen3guard":
            return QWEN_GUARD
    return None


def _by_template(chat_template: str) -> str:
    if "UNSAFE CONTENT CATEGORIES" in chat_template:
        return "qwen3guard" if "Controversial" in chat_template else "llamaguard"
    return "shieldgemma" if "guideline" in chat_template else ""


def _by_name(model: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", model.lower())
    return next((name for name in FAMILIES if name in plain), "")
