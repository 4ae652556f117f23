"""What the APIs say of themselves is whole, and examples are what their schemas take."""

from typing import Any

import pytest
from ninja import NinjaAPI

from chat.api_body_examples import EXAMPLES
from chat.openai_api import api as v1
from webapp.urls import api

APIS = pytest.mark.parametrize("one", [api, v1], ids=["api", "v1"])


def operations(one: NinjaAPI) -> list[tuple[str, Any]]:
    paths = one.get_openapi_schema(path_prefix="/x/")["paths"]
    return [
        (f"{method} {path}", operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


@APIS
def test_every_body_has_an_example(one: NinjaAPI) -> None:
    bodies = {
        name: operation["requestBody"]["content"]["application/json"]
        for name, operation in operations(one)
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert bodies
    assert not [name for name, body in bodies.items() if "example" not in body]


@APIS
def test_every_operation_tells_of_errors(one: NinjaAPI) -> None:
    assert all("4XX" in operation["responses"] for _, operation in operations(one))


def test_examples_are_of_bodies_that_there_are_and_are_accepted() -> None:
    models = {
        argument.__name__: argument
        for one in (api, v1)
        for _, router in one._routers
        for view in router.path_operations.values()
        for operation in view.operations
        for model in operation.models
        for argument in [
            field.annotation
            for field in model.model_fields.values()
            if hasattr(field.annotation, "model_validate")
        ]
    }
    assert set(EXAMPLES) <= set(models)
    for name, example in EXAMPLES.items():
        given = models[name].model_validate(example).model_dump(exclude_unset=True, mode="json")
        assert given.keys() == example.keys(), name
