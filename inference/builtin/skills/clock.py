"""Time and date: a call of the clock when it is offered, else the date of the system prompt."""
# ruff: noqa: E501 - patterns read best whole

import datetime

from inference.builtin import lexicon
from inference.builtin.dialog import Tool, function_tool
from inference.builtin.scene import Scene
from inference.builtin.words import Words, timezones

NO_TOOL = "I cannot tell the time without the clock tool. Please switch it on and ask again."

_TIME = (
    "(what|which) time is it [now|right now|please|at the moment|currently]?", "(what is|what's|whats) the [current|exact] time [now|right now|please|here]?",
    "(tell|give|can you tell|could you tell|show) me the [current|exact] time [please].", "(do you have|have you got|got) the time?",
    "how late is it [now]?", "(time|time please|time now|current time|the time|clock) [please]?", "(do you know|can you say|can you check) (what time it is|the time|how late it is) [now]?",
    "(I need|I want|I'd like) (to know the time|the time|the current time) [now].", "what does the clock say [now]?", "(check|look at|use) the clock [please|for me].",
    "(what|which) hour is it [now]?", "what time (have we got|do we have|do you have) [now]?", "is it (late|early|past noon|midnight) [already|yet]?",
)  # fmt: skip
_TIME_IN = (
    "(what|which) time is it in {c} [now|right now|at the moment]?", "(what is|what's|whats) the [current|local|exact] time in {c} [now]?",
    "(tell|give|can you tell|show) me the [current] time in {c} [please].", "(time|current time|local time|time now) in {c} [please|now]?",
    "how late is it in {c} [now]?", "(do you know|can you check|check) (what time it is|the time) in {c} [now]?", "(I need|I want to know|I'd like) the time in {c}.",
    "what (hour|time) (is it|do they have) [now] in {c}?", "and in {c}?", "what about {c}?",
)  # fmt: skip
_DATE = (
    "(what is|what's|whats) (the date|today's date|the current date) [today|now|please]?", "(what|which) date is (it|today) [today|now]?",
    "(tell|give|can you tell|could you tell) me (the date|today's date|the current date) [please].", "(date|today's date|the date|current date|date today) [please]?",
    "(do you know|I need|I forgot) (the date|today's date|what date it is|the current date) [today].", "what is today [exactly]?",
    "(which|what) day of the (month|year) is (it|today)?", "(what's|what is) the date of today?",
)  # fmt: skip
_DAY = (
    "(what|which) day is (it|today) [today|now]?", "(what|which) (day of the week|weekday) is (it|today) [today]?", "(tell|can you tell) me (the day of the week|which day it is|what day it is|what day today is) [please].",
    "is (it|today) (Monday|Friday|Saturday|Sunday|the weekend) [today|yet|already]?", "what weekday (do we have|have we got) [today]?", "(day|weekday|day of the week) today?",
)  # fmt: skip
_YEAR = (
    "(what|which) year is (it|this) [now|currently]?", "(what is|what's) the [current] year?", "(tell|can you tell) me (the year|what year it is|which year it is) [please].",
    "(in which|in what|which|what) year (are we|do we live) [in] [now]?",
)  # fmt: skip


def tool(words: Words) -> Tool:
    """The clock's schema, described in one of several ways."""
    rng = words.rng
    description = rng.choice((
        "Tell the current date and time.", "The current date, time and weekday.", "Returns the current time in a time zone.",
        "A clock. Gives the date and time now.", "Get the current date and time, by default in the server's time zone."))  # fmt: skip
    about = rng.choice((
        "IANA name such as Europe/Paris; default: the server's", "IANA time zone", "The time zone, e.g. Asia/Tokyo",
        "An IANA time zone name. Leave it out for the server's own.", "Time zone (optional)"))  # fmt: skip
    return function_tool(
        "clock", description, {"timezone": {"type": "string", "description": about}}, []
    )


def clock(scene: Scene) -> None:
    """One or two questions about time or date."""
    _once(scene)
    if scene.has_tool("clock") and scene.rng.random() < 0.15:
        _once(scene)


def _once(scene: Scene) -> None:
    rng = scene.rng
    kind = rng.choices(("time", "in", "date", "day", "year"), (5, 5, 3, 2, 1))[0]
    city, patterns = (
        None,
        {"time": _TIME, "in": _TIME_IN, "date": _DATE, "day": _DAY, "year": _YEAR}[kind],
    )
    if kind == "in":
        city = rng.choice(list(timezones()))
        asked_before = any(m.call and m.call.name == "clock" for m in scene.messages)
        patterns = _TIME_IN if asked_before else _TIME_IN[:-2]
        scene.ask(patterns, c=city)
    else:
        scene.ask(patterns)
    if city is None:
        scene.about(None, "Time and date")
    else:
        scene.about(f"the time in {city}", f"The time in {city}")
    if not scene.has_tool("clock"):
        dated = scene.today if kind == "date" else None
        scene.answer(f"Today is {dated}." if dated else NO_TOOL)
        return
    scene.call("clock", {"timezone": timezones()[city]} if city else {})
    _say(scene, kind, city)


def _say(scene: Scene, kind: str, city: str | None) -> None:
    rng = scene.rng
    zone = timezones()[city] if city else rng.choice(("UTC", "UTC", *timezones().values()))
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(
        minutes=rng.randrange(60 * 24 * 365 * 10)
    )
    if rng.random() < 0.06:
        error = rng.choice(
            ("error: unknown time zone", "error: the clock is not available", "error: timed out")
        )
        scene.result(error)
        scene.answer(f"The clock reports an {error}.")
        return
    hours = f"{moment:%H:%M}" + (f":{moment:%S}" if False else "")
    weekday, month = lexicon.DAYS[moment.weekday()], lexicon.MONTHS[moment.month - 1]
    scene.result(f"{moment:%Y-%m-%d} {hours} {weekday} {zone}")
    scene.answer({
        "time": f"It is {hours} ({zone}).",
        "in": f"It is {hours} in {city}.",
        "date": f"Today is {weekday}, {moment.day} {month} {moment.year}.",
        "day": f"Today is {weekday}.",
        "year": f"It is {moment.year}.",
    }[kind])  # fmt: skip
