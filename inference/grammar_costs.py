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
MAX_MULTIPLE = 10_000
MAX_PROPERTIES = 1_000


def check_costs(grammar: str, param: str) -> None:
    """Raises InvalidParameter where a schema in a grammar's serialised text costs too much.

    `multipleOf` takes a state for each remainder, those of several together one for each remainder of
    their least common multiple. The properties of one object take time by their number's square.
    """
    if not grammar.startswith("{"):
        return
    multiple = 1
    for schema in _objects(json.loads(grammar)):
        multiple = lcm(multiple, _digits(schema.get("multipleOf")))
        if multiple > MAX_MULTIPLE:
            problem = f"`multipleOf`: the least common multiple of all is above {MAX_MULTIPLE}"
            raise InvalidParameter(param, problem)
        properties = schema.get("properties")
        if isinstance(properties, dict) and len(properties) > MAX_PROPERTIES:
            raise InvalidParameter(param, f"an object with more than {MAX_PROPERTIES} properties")


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
        return MAX_MULTIPLE + 1
    value = abs(Decimal(str(number))).normalize()
    num_decimals = max(0, -int(value.as_tuple().exponent))
    return int(value.scaleb(num_decimals))
