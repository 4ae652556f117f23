"""Talking to the hub: whatever goes wrong becomes a sentence that a person can act on."""

import errno
from collections.abc import Callable
from typing import Any

from inference.errors import ModelError

FULL = "The disk is full. Make room, then pull again: what has arrived is kept."


class HubError(ModelError):
    """The hub did not give the model; the message says why and what to do."""

    code = "hub_error"


def token_of(setting: str) -> str | None:
    """The token in HF_TOKEN; None where it is empty. Raises HubError, which does not show it."""
    token = setting.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise HubError(
            "HF_TOKEN holds characters that no token has. Copy it again from your settings on the hub."
        )
    return token or None


def talk(name: str, ask: Callable[[], Any]) -> Any:
    """Ask the hub about a model. Raises HubError."""
    from httpx2 import TransportError
    from huggingface_hub import errors

    try:
        return ask()
    except errors.GatedRepoError:
        raise HubError(
            f"{name} is gated: accept its terms on its page, then set HF_TOKEN to a token of yours."
        ) from None
    except errors.RepositoryNotFoundError:
        raise HubError(f"The hub has no model {name}, or it is private (set HF_TOKEN).") from None
    except errors.DisabledRepoError:
        raise HubError(f"The hub has closed {name} to everybody.") from None
    except errors.EntryNotFoundError as error:
        raise HubError(f"{name} is no complete model: {error}") from None
    except errors.HFValidationError as error:
        raise HubError(f"The hub knows no such name: {cause_of(error)}") from None
    except errors.HfHubHTTPError as error:
        raise HubError(_of_status(name, error.response.status_code, error)) from error
    except (
        errors.OfflineModeIsEnabled,
        errors.LocalEntryNotFoundError,
        TransportError,
        OSError,
    ) as error:
        if is_full(error):
            raise HubError(FULL) from error
        raise HubError(
            f"The hub cannot be reached ({cause_of(error)}). Is there a network?"
        ) from error


def _of_status(name: str, status: int, error: Exception) -> str:
    if status in (401, 403):
        return (
            f"The hub does not let you have {name}: HF_TOKEN is not accepted, or is not allowed to"
            " read it."
        )
    if status == 429:
        return "The hub has had too many questions from here (429). Try again later."
    if status >= 500:
        return f"The hub answered with an error of its own ({status}). Try again later."
    return f"The hub answered with an error: {error}"


def is_full(error: BaseException) -> bool:
    """Whether it is the disk."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def cause_of(error: BaseException) -> str:
    """The first line of what it says."""
    text = str(error).splitlines()
    return text[0][:120] if text else type(error).__name__
