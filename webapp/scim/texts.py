"""Texts of a directory, before they are kept."""

from scim2_models import InvalidValueException

from chat.storable import is_storable


def checked(text: str | None, max_chars: int, attribute: str) -> str:
    """Without space around it; empty for none. Raises InvalidValueException."""
    text = (text or "").strip()
    if not is_storable(text):
        raise InvalidValueException(detail=f"{attribute} holds what is no character.")
    if len(text) > max_chars:
        raise InvalidValueException(detail=f"{attribute} has {max_chars} characters at most.")
    return text
