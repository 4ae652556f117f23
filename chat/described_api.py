"""APIs that describe themselves: with keys, errors and an example of every body."""

from typing import Any

from ninja import NinjaAPI

from chat.api_body_examples import EXAMPLES
from chat.api_errors import error_body

_ERROR = {
    "description": "What is wrong. With a 429 and a 503 comes `Retry-After`, in seconds.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["error"],
                "properties": {
                    "error": {
                        "type": "object",
                        "required": ["message", "type", "code", "param"],
                        "properties": {
                            "message": {"type": "string"},
                            "type": {"type": "string"},
                            "code": {"type": ["string", "null"]},
                            "param": {"type": ["string", "null"]},
                        },
                    }
                },
            },
            "example": error_body(404, "not_found", "There is no such conversation."),
        }
    },
}
_SECURITY: dict[str, Any] = {
    "key": {"type": "http", "scheme": "bearer", "description": "An API key, or an access token."},
    "session": {"type": "apiKey", "in": "cookie", "name": "vitrine_session"},
}


class DescribedApi(NinjaAPI):
    """Ninja knows of types only: what else a caller has to know is put beside them."""

    def get_openapi_schema(self, **kwargs: Any) -> Any:
        described = super().get_openapi_schema(**kwargs)
        described["components"]["securitySchemes"] = _SECURITY
        described["security"] = [{name: []} for name in _SECURITY]
        for operations in described["paths"].values():
            for operation in operations.values():
                operation["responses"].setdefault("4XX", _ERROR)
                _put_example(operation)
        return described


def _put_example(operation: dict[str, Any]) -> None:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        name = body["schema"].get("$ref", "").rpartition("/")[2]
        if name in EXAMPLES:
            body.setdefault("example", EXAMPLES[name])
