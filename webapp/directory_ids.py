"""What the directory calls an entry for good: how it is read, and how it is asked for.

An administrator may have typed one, under Connected accounts: it need not be one.
"""

from uuid import UUID

from chat.storable import is_storable
from webapp.directory_settings import DirectorySettings
from webapp.ldap3_import import escape_bytes, escape_filter_chars

_MAX_CHARS = 191  # as allauth keeps it


def read_id(config: DirectorySettings, raw: bytes) -> str:
    """Raises ValueError, with words: what is no text would, made one, be the same for two people."""
    if _is_guid(config):
        return str(UUID(bytes_le=raw))  # Active Directory's is binary
    text = raw.decode()
    if not (0 < len(text) <= _MAX_CHARS and is_storable(text)):
        raise ValueError("that is no text for an id")
    return text


def is_id(config: DirectorySettings, unique_id: str) -> bool:
    """Whether the directory can be asked for it."""
    try:
        return not _is_guid(config) or str(UUID(unique_id)) == unique_id.lower()
    except ValueError:
        return False


def id_filter(config: DirectorySettings, unique_id: str) -> str:
    """Of what `is_id`."""
    if _is_guid(config):
        escaped = escape_bytes(UUID(unique_id).bytes_le)
    else:
        escaped = escape_filter_chars(unique_id)
    return f"({config.unique_id}={escaped})"


def _is_guid(config: DirectorySettings) -> bool:
    return config.unique_id.lower() == "objectguid"
