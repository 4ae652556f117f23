"""The policy that a new installation begins with. It is a row like any other: operators change it.

It blocks what is almost certainly a request for the worst, notes what the heads are sure of, and holds
no answer back, so that text still streams word by word. What somebody says about hurting themself is
never blocked and costs no strikes.
"""

from typing import Any

_NOTED = {
    "harassment": 0.7,
    "harassment/threatening": 0.358,
    "hate": 0.7,
    "hate/threatening": 0.127,
    "illicit": 0.7,
    "illicit/violent": 0.84,
    "self-harm": 0.7,
    "self-harm/intent": 0.632,
    "self-harm/instructions": 0.849,
    "sexual": 0.7,
    "sexual/minors": 0.202,
    "violence": 0.7,
    "violence/graphic": 0.209,
    "prompt_injection": 0.773,
    "jailbreak": 0.773,
    "secrets": 0.5,
}
"""The thresholds of moderation/heads/thresholds.toml, as numbers that an operator reads and changes.
Where they move, so does a policy that nobody has changed, by a migration like 0006."""

_BLOCKED = {"illicit/violent": 0.97, "sexual/minors": 0.9, "hate/threatening": 0.97}

FIRST_POLICY: dict[str, Any] = {
    "input": {
        name: {"note": at, **({"block": _BLOCKED[name]} if name in _BLOCKED else {})}
        for name, at in _NOTED.items()
    },
    "output": {
        **{name: {"note": at} for name, at in _NOTED.items() if name != "secrets"},
        "sexual/minors": {"note": _NOTED["sexual/minors"], "review": 0.9},
    },
    "on_failure": {"input": "allow", "output": "allow"},
    "partial_output": "keep",
    "strikes": {"illicit/violent": 1, "sexual/minors": 2, "hate/threatening": 1},
}
