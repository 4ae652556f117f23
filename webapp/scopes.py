"""What an API key opens. An address that no scope names is closed to every key."""

from collections.abc import Collection

from chat.missing_families import MISSING_FAMILIES

SCOPES = {
    "chat": "answers of models",
    "embeddings": "vectors for texts",
    "moderations": "verdicts on texts",
    "audio": "speech to text, and text to speech",
    "images": "pictures that models make",
    "files": "files and batches",
    "knowledge": "vector stores and their search",
    "api": "everything of its user's under /api",
    "api:read": "the same, to read",
    "admin:read": "everybody's usage and the site's metrics, for an administrator's key",
}
"""Scope -> what for, in words."""

USUAL = tuple(scope for scope in SCOPES if scope not in ("api:read", "admin:read"))
"""What a key has where nobody says otherwise."""

ENTRANCES = frozenset({"/api/auth/token", "/api/auth/refresh", "/api/auth/revoke"})
"""Addresses of the APIs that nobody has to be signed in for: what is sent there is the proof."""

_READING = ("GET", "HEAD", "OPTIONS")
_OF_TEXTS = frozenset({"chat", "embeddings", "moderations"})
_OF_MODELS = frozenset({*_OF_TEXTS, "audio", "images"})
_OF_V1 = frozenset({*_OF_MODELS, "files", "knowledge"})
_DOORS: tuple[tuple[str, frozenset[str]], ...] = (
    ("/v1/openapi.json", frozenset(SCOPES)),
    ("/v1/models", _OF_MODELS),
    ("/v1/chat/", frozenset({"chat"})),
    ("/v1/completions", frozenset({"chat"})),
    ("/v1/responses", frozenset({"chat"})),
    ("/v1/messages", frozenset({"chat"})),
    ("/v1/tokenize", _OF_TEXTS),
    ("/v1/audio/", frozenset({"audio"})),
    ("/v1/images/", frozenset({"images"})),
    *((f"/v1/{name}", _OF_V1) for name in MISSING_FAMILIES),  # to be told so
    ("/v1/embeddings", frozenset({"embeddings"})),
    ("/v1/moderations", frozenset({"moderations"})),
    ("/v1/files", frozenset({"files"})),
    ("/v1/batches", frozenset({"files"})),
    ("/v1/vector_stores", frozenset({"knowledge"})),
    ("/api/admin/", frozenset({"admin:read"})),
    ("/metrics", frozenset({"admin:read"})),
    ("/api/", frozenset({"api"})),
)


def opens(scopes: Collection[str], method: str, path: str) -> bool:
    """Whether any of the scopes opens this address for this method."""
    allowed = scopes_for(method, path)
    return not allowed.isdisjoint(scopes)


def scopes_for(method: str, path: str) -> frozenset[str]:
    """Each of which opens it; empty: none does."""
    for prefix, scopes in _DOORS:
        if path == prefix or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/"):
            is_reading = method in _READING
            if "admin:read" in scopes and len(scopes) == 1:
                return scopes if is_reading else frozenset()
            return scopes | {"api:read"} if "api" in scopes and is_reading else scopes
    return frozenset()
