"""Whether this process is about to end: what runs may go on for a while, and nothing new begins."""

_is_draining = False


def stop_admitting() -> None:
    """From now on no new answer starts: the server is about to end."""
    global _is_draining
    _is_draining = True


def is_draining() -> bool:
    return _is_draining
