"""Attacks of others by their kind."""

import json
from pathlib import Path

from moderation.heads.published import published_kinds


def test_each_attack_is_of_a_way_and_of_an_aim(tmp_path: Path) -> None:
    rows = [
        ("direct", "system_mode", "security-violating", "a"),
        ("direct", "few_shot_attack", "logic-violating", "b"),
        ("indirect", "system_mode", "security-violating", "c"),
        ("direct", "system_mode", "logic-violating", "d"),
    ]
    names = ("injection_type", "injection_variant", "risk_category", "user_input")
    attacks = [dict(zip(names, row, strict=True)) for row in rows]
    (tmp_path / "prompt_injection_half.json").write_text(json.dumps(attacks))
    assert published_kinds(tmp_path) == {
        "direct: few shot attack": ["b"],
        "direct: logic-violating": ["b", "d"],
        "direct: security-violating": ["a"],
        "direct: system mode": ["a", "d"],
        "indirect: security-violating": ["c"],
        "indirect: system mode": ["c"],
    }
