"""Families of paths that OpenAI has and this API has not; scopes of keys name them without Django."""

_NO_SPEECH = "There is no speech in real time here; there is /v1/audio/transcriptions."
MISSING_FAMILIES = {
    "assistants": "There are no assistants under /v1; there is /v1/responses.",
    "chatkit": "There is no ChatKit here.",
    "containers": "No code is run here.",
    "conversations": "Go on from a response with previous_response_id, or use /api/conversations.",
    "evals": "There are no evaluations under /v1.",
    "fine_tuning": "Models are not trained here.",
    "realtime": _NO_SPEECH,
    "skills": "There are no skills here.",
    "threads": "There are no threads here; there is /v1/responses.",
    "uploads": "Files are sent whole, to /v1/files.",
    "videos": "There is no model for films here.",
}
"""With all that lies below them."""
