"""The trace of an answer as a value: what it did when, with what, and what it cost."""

from typing import Any

from django.db.models import F

from chat import access
from chat.models import Generation
from chat.values import Value


def trace_of(user: Any, message_id: object) -> Value:
    """Two queries. Raises NotFound."""
    return trace_value(access.answer_for(user, message_id))


def trace_value(generation: Generation) -> Value:
    """As in docs/api.md. Empty `spans`: the answer is older than its kind of trace, or has none yet."""
    message, trace = generation.message, generation.trace
    timings = message.timings or {}
    turns = generation.turns.values("index", "params", num_prompt=F("prompt_ids__len"))
    spans = trace.get("spans", [])
    return {
        "message": str(message.pk),
        "run": str(generation.pk),
        "trace_id": trace.get("id"),
        "status": message.status,
        "model": generation.model,
        "revision": generation.model_revision,
        "finish_reason": message.finish_reason,
        "error": message.error,
        "attempts": generation.attempts,
        "created_at": generation.created_at.isoformat(),
        "total_ms": max(span["end_ms"] for span in spans) if spans else timings.get("total_ms"),
        "first_token_ms": _first_token_ms(spans),
        "usage": message.usage,
        "timings": message.timings,
        "engine_ms": timings.get("engine_ms"),
        "cost": trace.get("cost"),
        "spans": spans,
        "turns": [
            {
                "index": t["index"],
                "prompt_tokens": t["num_prompt"] or None,  # forgotten: revoked.py
                "params": _shown(t["params"]),
            }
            for t in turns
        ],
    }


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    """The seed as text: it has more digits than JavaScript's numbers. Where images stood is left out."""
    shown = {name: value for name, value in params.items() if name != "images"}
    return shown | {"seed": str(shown["seed"])} if "seed" in shown else shown


def _first_token_ms(spans: list[dict[str, Any]]) -> float | None:
    return next((span["start_ms"] for span in spans if span["kind"] == "decode"), None)
