"""Why `serve` does not start."""


class CannotServe(Exception):
    """The message is for the person at the console."""
