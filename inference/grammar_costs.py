"""What grammars may cost: they are compiled between two steps, while everybody's answers wait.

llguidance counts symbols and the fuel of its lexer, but not all of what takes time or memory. The
bounds keep a compilation below half a second and some 30 MiB. Torch-free.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite, lcm
from typing import Any

from llguidance import LLParserLimits

from inference.errors import InvalidParameter

LIMITS = LLParserLimits(initial_lexer_fuel=200_000, max_grammar_size=20_000)
MAX_MULTIPLES = 95_000
MAX_COMMON_MULTIPLE = 10_000
MAX_PROPERTIES = 1_000
_COMBINING = ("$ref", "anyOf", "oneOf")
_SAYS_NOTHING = {"title", "description", "default", "examples", "deprecated", "$schema", "$id"}
_SAYS_NOTHING |= {"$defs", "definitions", "x-guidance", *_COMBINING}


def check_costs(grammar: str, param: str) -> None:
    """Raises InvalidParameter where a schema in a grammar's serialised text costs too much.

    `multipleOf` takes a state for each remainder. Where schemas are combined, one value may have to
    be a multiple of several, which takes a state for each remainder of their least common multiple.
    The properties of one object take time by their number's square.
    """
    if not grammar.startswith("{"):
        return
    steps, has_combined = {1}, False
    for schema in _objects(json.loads(grammar)):
        steps.add(_digits(schema.get("multipleOf")))
        has_combined = has_combined or _is_combined(schema)
        properties = schema.get("properties")
        if isinstance(properties, dict) and len(properties) > MAX_PROPERTIES:
            raise InvalidParameter(param, f"an object with more than {MAX_PROPERTIES} properties")
    if sum(steps) > MAX_MULTIPLES:
        raise InvalidParameter(param, f"`multipleOf`: more than {MAX_MULTIPLES} together")
    if has_combined and lcm(*steps) > MAX_COMMON_MULTIPLE:
        problem = f"the least common multiple of all is above {MAX_COMMON_MULTIPLE}"
        raise InvalidParameter(param, f"`multipleOf` in combined schemas: {problem}")


def _is_combined(schema: dict[str, Any]) -> bool:
    """Whether what it names has to hold beside something else."""
    is_beside = any(key in schema for key in _COMBINING) and set(schema) - _SAYS_NOTHING
    return "allOf" in schema or bool(is_beside)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All JSON objects in a value, at any depth."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            yield one
            left += one.values()
        elif isinstance(one, list):
            left += one


def _digits(number: Any) -> int:
    """A number without its point, which adds no remainders; 1 for what is none."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not number:
        return 1
    if not isfinite(number):
        return MAX_MULTIPLES + 1
    value = abs(Decimal(str(number))).normalize()
    num_decimals = max(0, -int(value.as_tuple().exponent))
    return int(value.scaleb(num_decimals))
