"""Classes of requests: whoever waits in person goes before programs, and those before chores."""

from typing import Literal

Priority = Literal["interactive", "api", "background"]
RANK: dict[Priority, int] = {"interactive": 0, "api": 1, "background": 2}
"""The lowest goes first."""
