"""The policy that a new installation begins with. It is a row like any other: operators change it.

It blocks what is almost certainly a request for the worst, notes what the heads are sure of, and holds
no answer back, so that text still streams word by word. What somebody says about hurting themself is
never blocked and costs no strikes.
"""

from typing import Any

_NOTED = {
    "harassment": 0.791,
    "harassment/threatening": 0.417,
    "hate": 0.791,
    "hate/threatening": 0.484,
    "illicit": 0.791,
    "illicit/violent": 0.817,
    "self-harm": 0.791,
    "self-harm/intent": 0.779,
    "self-harm/instructions": 0.925,
    "sexual": 0.791,
    "sexual/minors": 0.534,
    "violence": 0.791,
    "violence/graphic": 0.446,
    "prompt_injection": 0.724,
    "jailbreak": 0.724,
    "secrets": 0.5,
}
"""The shipped thresholds of moderation/heads/thresholds.toml; here as they were when this began."""

_BLOCKED = {"illicit/violent": 0.97, "sexual/minors": 0.9, "hate/threatening": 0.97}

FIRST_POLICY: dict[str, Any] = {
    "input": {
        name: {"note": at, **({"block": _BLOCKED[name]} if name in _BLOCKED else {})}
        for name, at in _NOTED.items()
    },
    "output": {
        **{name: {"note": at} for name, at in _NOTED.items() if name != "secrets"},
        "sexual/minors": {"note": 0.534, "review": 0.9},
    },
    "on_failure": {"input": "allow", "output": "allow"},
    "partial_output": "keep",
    "strikes": {"illicit/violent": 1, "sexual/minors": 2, "hate/threatening": 1},
}
