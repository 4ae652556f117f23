"""Sentences of the admin console, which speaks English alone."""


def counted(number: int, noun: str) -> str:
    """`1 account`, `2 accounts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
