"""Arithmetic: a call of the calculator when it is offered, and its result in a sentence."""
# ruff: noqa: E501 - patterns read best whole

from dataclasses import dataclass

from inference.builtin import lexicon
from inference.builtin.dialog import Tool, function_tool
from inference.builtin.scene import Scene
from inference.builtin.words import Words, plural

NO_TOOL = "I cannot calculate without the calculator tool. Please switch it on and ask again."

_SMALL = tuple(lexicon.SMALL_NUMBERS.split())
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


@dataclass(frozen=True, slots=True)
class Sum:
    """A calculation: as people write it, as the tool takes it, and as the answer names it."""

    written: str
    expression: str
    named: str


def tool(words: Words) -> Tool:
    """The calculator's schema, described in one of several ways."""
    rng = words.rng
    description = rng.choice((
        "Calculate an arithmetic expression.", "Evaluate an arithmetic expression exactly.", "A calculator.",
        "Work out a mathematical expression such as 2 * (3 + 4).", "Evaluates arithmetic. Use it for every calculation.",
        "Calculates the value of an expression with + - * / ** and parentheses."))  # fmt: skip
    about = rng.choice((
        "The expression, for example 2 * (3 + 4)", "Arithmetic expression", "What to calculate, e.g. 17 * 23",
        "An expression with numbers, + - * / ** % and parentheses.", "The expression to evaluate"))  # fmt: skip
    expression = {"type": "string", "description": about}
    if rng.random() < 0.1:
        del expression["description"]
    return function_tool("calculator", description, {"expression": expression}, ["expression"])


def in_words(number: int) -> str:
    """A number below 100 in English words."""
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


def _number(words: Words) -> str:
    rng = words.rng
    if rng.random() < 0.12:
        return f"{words.number(0, 999)}.{rng.randint(1, 99)}"
    return str(words.number(0, 99999) if rng.random() < 0.3 else words.number(1, 999))


_SIGNS = {
    "+": ("{a} + {b}", "{a}+{b}", "{a} plus {b}", "{a} added to {b}"),
    "-": ("{a} - {b}", "{a}-{b}", "{a} minus {b}", "{a} take away {b}"),
    "*": ("{a} * {b}", "{a}*{b}", "{a} times {b}", "{a} x {b}", "{a}x{b}", "{a} multiplied by {b}", "{a} × {b}"),
    "/": ("{a} / {b}", "{a}/{b}", "{a} divided by {b}", "{a} over {b}", "{a} ÷ {b}", "{a} : {b}"),
}  # fmt: skip


def draw(words: Words) -> Sum:
    """A random calculation."""
    rng = words.rng
    kind = rng.randrange(20)
    first, second = _number(words), _number(words)
    if kind < 9:
        sign = rng.choice("+-**/")
        written = rng.choice(_SIGNS[sign]).format(a=first, b=second)
        exact = f"{first} {sign} {second}"
        return Sum(written, exact, exact)
    if kind < 12:
        return _long(words)
    if kind == 12:
        a, b = rng.randint(0, 99), rng.randint(0, 99)
        sign, word = rng.choice(
            (("+", "plus"), ("-", "minus"), ("*", "times"), ("/", "divided by"))
        )
        return Sum(f"{in_words(a)} {word} {in_words(b)}", f"{a} {sign} {b}", f"{a} {sign} {b}")
    if kind < 15:
        part = rng.choice(
            (
                str(rng.randint(1, 99)),
                str(rng.choice((5, 10, 15, 20, 25, 50, 75))),
                f"{rng.randint(1, 20)}.5",
            )
        )
        written = rng.choice(
            ("{a}% of {b}", "{a} % of {b}", "{a} percent of {b}", "{a} per cent of {b}")
        ).format(a=part, b=second)
        return Sum(written, f"{part} / 100 * {second}", f"{part}% of {second}")
    if kind < 17:
        base, power = (
            rng.choice((str(rng.randint(2, 99)), first)),
            rng.choice((2, 3, rng.randint(2, 20))),
        )
        forms = [
            "{a}^{b}",
            "{a} ^ {b}",
            "{a}**{b}",
            "{a} ** {b}",
            "{a} to the power of {b}",
            "{a} to the power {b}",
        ]
        forms += {2: ["{a} squared", "the square of {a}"], 3: ["{a} cubed", "the cube of {a}"]}.get(
            power, []
        )
        return Sum(
            rng.choice(forms).format(a=base, b=power),
            f"{base} ** {power}",
            f"{base} to the power of {power}",
        )
    if kind < 19:
        value = str(rng.choice((rng.randint(2, 40) ** 2, words.number(2, 99999))))
        written = rng.choice(
            (
                "the square root of {a}",
                "square root of {a}",
                "sqrt({a})",
                "sqrt {a}",
                "root of {a}",
                "√{a}",
            )
        )
        return Sum(written.format(a=value), f"sqrt({value})", f"The square root of {value}")
    return Sum(f"half of {first}", f"{first} / 2", f"{first} / 2")


def _long(words: Words) -> Sum:
    """Three or four numbers with signs and perhaps parentheses."""
    rng = words.rng
    parts = [_number(words) for _ in range(rng.randint(3, 4))]
    signs = [rng.choice("+-*/") for _ in parts[1:]]
    opened = rng.randrange(len(parts) - 1) if rng.random() < 0.6 else None
    tokens: list[str] = []
    for place, part in enumerate(parts):
        if place:
            tokens.append(signs[place - 1])
        tokens.append(
            f"({part}"
            if place == opened
            else f"{part})"
            if opened is not None and place == opened + 1
            else part
        )
    exact = " ".join(tokens)
    kind = rng.randrange(4)
    if kind == 0:
        return Sum(exact.replace(" ", ""), exact, exact)
    if kind == 1 and opened is None:
        named = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
        return Sum(" ".join(named.get(token, token) for token in tokens), exact, exact)
    return Sum(exact, exact, exact)


_ASKS = (
    "(what is|what's|whats|what does|how much is) {e} [equal]?",
    "(calculate|compute|work out|evaluate|solve|calc|find|figure out|determine) {e} [for me|please].",
    "(can|could|would|will) you (calculate|compute|work out|solve|tell me|do|find) {e} [for me|please]?",
    "{e}", "{e} = ?", "{e} =", "{e}?", "(tell|give) me [the result of|the value of|the answer to] {e} [please].",
    "(what is|what's) the (result|value|answer|sum|total) of {e}?",
    "I (need|want|would like) [to know] [the result of|the value of] {e}.",
    "(what|how much) (do I get for|do you get for|would be|makes|will be) {e}?",
    "(please|kindly) (calculate|compute|work out|solve) {e} [now].",
    "(do the math|maths question|math|quick math|a sum for you|sum): {e}",
    "(use|take) the calculator (for|to work out|to calculate|on) {e}.",
    "(how much|what) does {e} (make|give|equal|come to)?", "(do you know|I wonder) (what|how much) {e} is [?]",
    "(can you|could you) tell me (what|how much) {e} is?", "help me (with|calculate|solve) {e} [please].",
    "(what|how much) will {e} (make|give|be)?", "let's (calculate|compute|do) {e}.",
)  # fmt: skip
_ADD = (
    ("(add|sum up|sum|total) {a} and {b} [for me|please].", "{a} + {b}"),
    ("(what is|what's|calculate|give me|find) the (sum|total) of {a} and {b} [?]", "{a} + {b}"),
    ("(subtract|take|deduct) {b} from {a} [please].", "{a} - {b}"),
    ("(what is|what's|calculate|find) the difference (between|of) {a} and {b} [?]", "{a} - {b}"),
    ("multiply {a} (by|with|and) {b} [for me|please].", "{a} * {b}"),
    ("(what is|what's|calculate|find|give me) the product of {a} and {b} [?]", "{a} * {b}"),
    ("divide {a} by {b} [for me|please].", "{a} / {b}"),
    ("(I have|there are|we have|she has) {a} {x} and (buy|get|find|receive|make) {b} more. How many {x} (do I have now|are there|is that)?", "{a} + {b}"),
    ("(I have|there are|we have|he has) {a} {x} and (lose|sell|eat|give away|drop) {b}. How many {x} (are left|remain|do I have left)?", "{a} - {b}"),
    ("(one|a) (ticket|box|bag|lamp|book) costs {b} euros. (What|How much) do {a} cost?", "{a} * {b}"),
    ("(I|we) (buy|order|need) {a} {x} (at|for) {b} euros each. (What is the total|How much is that|What do I pay)?", "{a} * {b}"),
    ("(share|split|divide) {a} {x} (among|between) {b} people. How many (does each get|each)?", "{a} / {b}"),
    ("(how many|what are) {x} are {a} boxes of {b} {x}?", "{a} * {b}"),
    ("how (long|many hours) (does it take|do I need) (to drive|for) {a} kilometres at {b} kilometres per hour?", "{a} / {b}"),
)  # fmt: skip

_RESULT_ERRORS = (
    "error: division by zero", "error: invalid expression", "error: result too large", "Error: unexpected symbol",
    "error: number too large", "error: syntax error", "error: the expression is too long", "error: not a number",
    "error: timed out", "error: unknown name",
)  # fmt: skip


def calculator(scene: Scene) -> None:
    """One calculation, with or without the tool."""
    rng, words = scene.rng, scene.words
    if rng.random() < 0.25:
        pattern, exact = rng.choice(_ADD)
        first, second = _number(words), _number(words)
        scene.ask((pattern,), a=first, b=second, x=f"{plural(words.choice('THINGS'))}")
        named = exact.format(a=first, b=second)
        _answer(scene, Sum("", named, named))
        return
    drawn = draw(words)
    scene.ask(_ASKS, wrap=rng.random() < 0.5, e=drawn.written)
    _answer(scene, drawn)


def _answer(scene: Scene, drawn: Sum) -> None:
    rng, words = scene.rng, scene.words
    scene.about(drawn.named[0].lower() + drawn.named[1:], drawn.named)
    if not scene.has_tool("calculator"):
        scene.answer(NO_TOOL)
        return
    scene.call("calculator", {"expression": drawn.expression})
    if rng.random() < 0.08:
        error = rng.choice(_RESULT_ERRORS)
        scene.result(error)
        scene.answer(f"The calculator reports an {error[0].lower()}{error[1:]}.")
        return
    value = value_of(drawn.expression)
    if value is None:
        scene.result("error: division by zero")
        scene.answer("The calculator reports an error: division by zero.")
        return
    if rng.random() < 0.15:  # any number must be copied, not worked out
        value = (
            f"{words.number(0, 999999)}"
            if rng.random() < 0.5
            else f"{rng.uniform(-1000, 1000):.{rng.randint(1, 10)}f}"
        )
    scene.result(value)
    scene.answer(f"{drawn.named} is {value}.")


def value_of(expression: str) -> str | None:
    """What the tool answers; None for a division by zero or a result beyond 10^15."""
    try:
        value = eval(expression, {"__builtins__": {}, "sqrt": lambda v: v**0.5})  # noqa: S307 - our own sum
    except (ZeroDivisionError, OverflowError):
        return None
    if isinstance(value, complex) or abs(value) > 10**15:
        return None
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.10g}"
