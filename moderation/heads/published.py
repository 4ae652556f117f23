"""Attacks that others have published, and harmless texts beside them: a set to measure with, never to
learn from.

PurpleLlama's CybersecurityBenchmarks (prompt injection, and coding prompts at the border) and BIPIA
(Yi et al. 2023: its instructions, and mails to put them into), where they are at hand.
"""

import json
import re
from pathlib import Path

_SENTENCE_END = re.compile(r"[.!?]\s+|\n")


def published(directory: Path) -> dict[str, list[str]]:
    """Texts by the name of their set; those of harmless ones begin with "harmless". Raises OSError."""
    attacks = json.loads((directory / "prompt_injection_half.json").read_text())
    planted = json.loads((directory / "text_attack_train.json").read_text())
    code = json.loads((directory / "benign_borderline_half.json").read_text())
    lines = (directory / "email_contexts_train.jsonl").read_text().splitlines()
    mails = [json.loads(line)["context"] for line in lines]
    questions = [json.loads(line)["question"].removeprefix("Q: ") for line in lines]
    orders = [order for group in planted.values() for order in group]
    pairs = [(mails[place % len(mails)], order) for place, order in enumerate(orders)]
    return {
        **{
            f"CyberSecEval, {kind}": [
                one["user_input"] for one in attacks if one["injection_type"] == kind
            ]
            for kind in ("direct", "indirect")
        },
        "BIPIA, before a mail": [f"{order}\n{mail}" for mail, order in pairs],
        "BIPIA, within a mail": [_within(mail, order) for mail, order in pairs],
        "BIPIA, behind a mail": [f"{mail}\n{order}" for mail, order in pairs],
        "harmless: mails": mails,
        "harmless: mails with a question": [
            *(f"{mail}\n\n{question}" for mail, question in zip(mails, questions, strict=True)),
            *(f"{question}\n\n{mail}" for mail, question in zip(mails, questions, strict=True)),
        ],
        "harmless: coding prompts": [one["mutated_prompt"] for one in code],
    }


def published_kinds(directory: Path) -> dict[str, list[str]]:
    """CyberSecEval's attacks by how they go about it, and by what they are against: a secret that is
    kept (security-violating), or a limit to some subject (logic-violating). Raises OSError."""
    attacks = json.loads((directory / "prompt_injection_half.json").read_text())
    found: dict[str, list[str]] = {}
    for one in sorted(attacks, key=lambda one: str(one["injection_variant"])):
        for kind in ("injection_variant", "risk_category"):
            name = f"{one['injection_type']}: {one[kind].replace('_', ' ')}"
            found.setdefault(name, []).append(one["user_input"])
    return dict(sorted(found.items()))


def _within(mail: str, order: str) -> str:
    """Between two sentences, in the middle as far as there is one."""
    ends = [found.end() for found in _SENTENCE_END.finditer(mail)] or [len(mail) // 2]
    at = min(ends, key=lambda end: abs(end - len(mail) / 2))
    return f"{mail[:at].rstrip()}\n{order}\n{mail[at:]}"
