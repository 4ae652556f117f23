"""The fields of a form as one of our schemas."""

from typing import Any, TypeVar, get_origin

from django.http import QueryDict
from pydantic import ValidationError

from chat.api_errors import ApiError, problem_of
from chat.openai_schemas import Strict

T = TypeVar("T", bound=Strict)


def read_form(kind: type[T], fields: QueryDict) -> T:
    """Of a form as clients write it: a list is its name, most often with [] behind, several times.

    Raises ApiError, which names the field.
    """
    lists = {name for name, of in kind.model_fields.items() if get_origin(of.annotation) is list}
    values: dict[str, Any] = {}
    for key in fields:
        name = key.partition("[")[0]
        given = fields.getlist(key)
        is_list = key.endswith("[]") or name in lists
        values[name] = [*values.get(name, []), *given] if is_list else given[-1]
    try:
        return kind(**values)
    except ValidationError as error:
        param, message = problem_of(dict(error.errors()[0]))
        raise ApiError(400, "invalid_value", message, param) from None
