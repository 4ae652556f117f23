"""Exact arithmetic for models, which are bad at it."""

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from chat.tools.base import Tool, ToolFailed

MAX_CHARS = 300
MAX_BITS = 4096  # of any number on the way: 9**9**9 must not take the machine down
_SIGNIFICANT_DIGITS = 12
_MAX_ROUND_DIGITS = 300

Number = Fraction | float

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "abs": abs,
    "round": lambda x, digits=Fraction(0): _round(Fraction(x), int(digits)),
    "floor": math.floor,
    "ceil": math.ceil,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "exp": math.exp,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "min": min,
    "max": max,
}
_CONSTANTS = {"pi": math.pi, "e": math.e}


def calculate(expression: str) -> str:
    """The value of an arithmetic expression, as people write it: `17 * 23`, `2^10`, `15% of 80`.

    Exact for fractions; roots and the like in double precision, 12 significant digits shown.
    Raises ToolFailed with the reason.
    """
    if len(expression) > MAX_CHARS:
        raise ToolFailed(f"the expression is longer than {MAX_CHARS} characters")
    try:
        tree = ast.parse(_as_python(expression), mode="eval")
        return _show(_value(tree.body))
    except ZeroDivisionError:
        raise ToolFailed("division by zero") from None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ToolFailed(f"'{expression}' is no arithmetic expression") from None
    except OverflowError:
        raise ToolFailed("the number is too large") from None


def _as_python(expression: str) -> str:
    text = expression.strip().rstrip("=?").replace("^", "**").replace("×", "*").replace("÷", "/")
    text = text.replace("−", "-").replace("·", "*").replace("√", "sqrt")
    text = re.sub(r"(?<=\d)[,_](?=\d{3}\b)", "", text)  # 1,000
    text = re.sub(r"(\d+(?:\.\d+)?)\s*%\s*of\b", r"\1 / 100 *", text)
    # A percent sign with nothing behind it to divide by is a percentage, not a remainder.
    return re.sub(r"(\d+(?:\.\d+)?)\s*%(?!\s*[\d(a-z])", r"(\1 / 100)", text).strip()


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(_BINARY[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            result = _FUNCTIONS[name](*(_value(a) for a in args))
            return _bounded(Fraction(result) if isinstance(result, int) else result)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
    raise ValueError(node)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent) > MAX_BITS:
            raise OverflowError
        power: Fraction = base ** int(exponent)
        return power
    result: float | complex = float(base) ** float(exponent)
    if isinstance(result, complex):
        raise ToolFailed("the result is no real number")
    return result


def _round(number: Fraction, digits: int) -> Fraction:
    # Python computes 10**digits in one go, during which nothing else of the process runs.
    if abs(digits) > _MAX_ROUND_DIGITS:
        raise OverflowError
    return Fraction(round(number, digits))


def _bounded(number: Number) -> Number:
    if isinstance(number, Fraction):
        if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
            raise OverflowError
    elif not math.isfinite(number):
        raise OverflowError
    return number


def _show(number: Number) -> str:
    if isinstance(number, Fraction) and number.denominator == 1:
        return str(number.numerator)
    return f"{float(number):.{_SIGNIFICANT_DIGITS}g}"


def _run(arguments: dict[str, Any]) -> str:
    expression = arguments.get("expression")
    if not isinstance(expression, str) or not expression.strip():
        raise ToolFailed("'expression' is missing")
    return calculate(expression)


CALCULATOR = Tool(
    name="calculator",
    description="Calculate the value of an arithmetic expression.",
    parameters={
        "type": "object",
        "properties": {
            "expression": {"type": "string", "description": "For example 17 * 23 or (3 + 4) / 2"}
        },
        "required": ["expression"],
    },
    run=_run,
    has_side_effects=False,
    is_trusted=True,
)
