"""Tools never seen before, called from their schemas, and their results put into words.

Two sources: families of everyday tools with natural requests, and tools composed of a random verb,
noun and arguments, asked for by the names in the schema. Scoring has families and words of its own.
"""
# ruff: noqa: E501 - patterns read best whole

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference.builtin import lexicon
from inference.builtin.dialog import Tool, function_tool
from inference.builtin.phrasing import fill, pick, typed
from inference.builtin.scene import Scene, a, capitalised, joined
from inference.builtin.words import Split, Words, is_held_out

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a tool and how to draw a value for it."""

    name: str
    kind: str  # string, integer, number, boolean or enum
    draw: Callable[[Words], Value]
    about: str = ""
    options: tuple[str, ...] = ()

    def schema(self, words: Words) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "string" if self.kind == "enum" else self.kind}
        if self.options:
            made["enum"] = list(self.options)
        if self.about and words.rng.random() < 0.8:
            made["description"] = self.about
        return made


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of tools: names, descriptions, arguments, and requests with their slots."""

    names: tuple[str, ...]
    about: str
    arguments: tuple[Argument, ...]
    requests: tuple[str, ...]


def _s(name: str, draw: Callable[[Words], Value], about: str = "") -> Argument:
    return Argument(name, "string", draw, about)


def _i(name: str, low: int, high: int, about: str = "") -> Argument:
    return Argument(name, "integer", lambda w: w.number(low, high), about)


def _e(name: str, options: str, about: str = "") -> Argument:
    choices = tuple(options.split())
    return Argument(name, "enum", lambda w: w.rng.choice(choices), about, choices)


def _thing(words: Words) -> str:
    return words.noun()


def _some_text(words: Words) -> str:
    rng = words.rng
    return rng.choice((words.phrase(2, 5), words.topic(), f"see you at {words.clock_time()}", f"bring the {words.choice('THINGS')}",
                       f"the {words.choice('THINGS')} is {words.choice('ADJECTIVES')}"))  # fmt: skip


KINDS = (
    Kind(("get_weather", "weather", "current_weather", "weather_report"), "Get the current weather of a city.", (_s("city", Words.city, "Name of the city"),), (
        "(what is|what's|how is) the weather [like] in {city} [today|now]?", "weather in {city}", "(is it|does it) (raining|warm|rain|cold|sunny) in {city} [today|now]?",
        "(tell|give) me the weather (in|for) {city} [please].")),
    Kind(("get_forecast", "forecast", "weather_forecast"), "Weather forecast for some days.", (_s("location", Words.city, "The place"), _i("days", 1, 14, "Number of days")), (
        "(what is|give me|show me|I need) the forecast for {location} for [the next] {days} days.", "(how will|what will) the weather be in {location} [for|over] the next {days} days?")),
    Kind(("send_email", "write_mail", "mail"), "Send an e-mail.", (_s("to", Words.first_name, "Recipient"), _s("body", _some_text, "Text of the mail")), (
        "(send|write) (an email|an e-mail|a mail) to {to} saying {body}.", "(email|mail) {to}: {body}", "(send|write) {to} (an email|a mail) that says {body}.")),
    Kind(("send_message", "text_message", "post_message"), "Send a short message to a person.", (_s("recipient", Words.first_name, "Who gets it"), _s("text", _some_text, "The message")), (
        "(send|write) (a message|a text) to {recipient} saying {text}.", "(text|message|tell) {recipient}: {text}", "(send|write) {recipient} the message {text}.")),
    Kind(("set_timer", "start_timer", "timer"), "Start a timer.", (_i("minutes", 1, 600, "Length in minutes"),), (
        "(set|start) a timer (for|of|to) {minutes} minutes [please].", "(timer|wake me|remind me) in {minutes} minutes.", "(count down|time) {minutes} minutes [please].")),
    Kind(("set_alarm", "alarm"), "Set an alarm.", (_s("time", Words.clock_time, "When"),), (
        "(set|make) an alarm (for|at) {time} [please].", "wake me [up] at {time}.", "(alarm|I need an alarm) at {time}.")),
    Kind(("create_reminder", "add_reminder", "remind"), "Create a reminder.", (_s("text", _some_text, "What to remember"), _s("date", Words.date, "When")), (
        "remind me on {date}: {text}", "(set|create|add) a reminder (for|on) {date}: {text}", "(on {date}, remind me|remind me on {date}) of this: {text}")),
    Kind(("play_music", "play_song", "music_player"), "Play a song or an artist.", (_s("title", lambda w: w.phrase(1, 3), "Song or artist"),), (
        "play [the song|some|something by] {title} [please].", "(I want|I'd like) to (hear|listen to) {title}.", "(put on|start) {title} [please].")),
    Kind(("set_light", "switch_light", "light"), "Switch the light of a room.", (_s("room", lambda w: w.choice("PLACES"), "Room"), _e("state", "on off", "On or off")), (
        "(turn|switch) {state} the light in the {room} [please].", "(turn|switch) the {room} light {state} [please].", "light {state} in the {room} [please].")),
    Kind(("set_temperature", "thermostat", "heat_room"), "Set the temperature of a room.", (_s("room", lambda w: w.choice("PLACES"), "Room"), _i("degrees", 5, 35, "Target in degrees Celsius")), (
        "(set|heat|turn) the {room} to {degrees} degrees [please].", "(make|set) it {degrees} degrees in the {room}.", "I want {degrees} degrees in the {room}.")),
    Kind(("set_volume", "volume"), "Set the volume of the speaker.", (_i("level", 0, 100, "From 0 to 100"),), (
        "(set|turn|change) the volume to {level} [please].", "volume {level} [please].", "(make|put) the sound (at|to) {level}.")),
    Kind(("translate", "translate_text", "translator"), "Translate a text.", (_s("text", lambda w: w.phrase(1, 4), "Text to translate"), _s("language", lambda w: w.choice("LANGUAGES"), "Target language")), (
        "translate {text} (to|into) {language} [please].", "(how do you say|what is) {text} in {language}?", "(say|put) {text} in {language}.")),
    Kind(("stock_price", "get_stock", "share_price"), "Get the price of a share.", (_s("symbol", lambda w: "".join(w.rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=w.rng.randint(2, 5))), "Ticker symbol"),), (
        "(what is|what's|tell me|show me) the [current] (stock price|share price|price) of {symbol}.", "how much is {symbol} [stock] [now]?", "stock price {symbol}")),
    Kind(("convert_currency", "exchange", "currency"), "Convert an amount of money.", (_i("amount", 1, 9999, "How much"), _e("source", "USD EUR GBP JPY CHF", "From"), _e("target", "USD EUR GBP JPY CHF", "To")), (
        "(convert|change|exchange) {amount} {source} (to|into) {target} [please].", "(how much is|what is|what are) {amount} {source} in {target}?", "{amount} {source} to {target}")),
    Kind(("convert_units", "unit_converter"), "Convert between units.", (_i("value", 1, 9999), _e("from_unit", "metres feet miles kilometres inches"), _e("to_unit", "metres feet miles kilometres inches")), (
        "(convert|change) {value} {from_unit} (to|into) {to_unit} [please].", "(how many {to_unit} are|what is|how much is) {value} {from_unit} [in {to_unit}]?", "{value} {from_unit} in {to_unit}")),
    Kind(("book_flight", "flight_search", "find_flights"), "Find flights between two cities.", (_s("origin", Words.city, "From"), _s("destination", Words.city, "To")), (
        "(book|find|get|search) [me] (a flight|flights) from {origin} to {destination} [please].", "I (want|need|would like) to fly from {origin} to {destination}.", "(flight|flights) {origin} to {destination}")),
    Kind(("find_train", "train_times", "trains"), "Train connections between two cities.", (_s("start", Words.city), _s("goal", Words.city), _s("time", Words.clock_time)), (
        "(find|get|show) [me] a train from {start} to {goal} at {time}.", "(when is|which is) the train from {start} to {goal} at {time}?", "train from {start} to {goal}, {time}")),
    Kind(("book_hotel", "find_hotel", "reserve_room"), "Book a hotel room.", (_s("city", Words.city), _i("nights", 1, 30)), (
        "(book|find|reserve) [me] a (hotel|room|hotel room) in {city} for {nights} nights.", "I (need|want) a (hotel|room) in {city} for {nights} nights.")),
    Kind(("book_table", "reserve_table"), "Reserve a table at a restaurant.", (_s("restaurant", Words.proper), _i("guests", 1, 20), _s("time", Words.clock_time)), (
        "(book|reserve) a table at {restaurant} for {guests} people at {time}.", "(a table|table) for {guests} at {restaurant}, {time} [please].", "we are {guests} people and want a table at {restaurant} at {time}.")),
    Kind(("order_food", "food_order"), "Order food.", (_s("dish", lambda w: w.choice("FOODS")), _i("count", 1, 30)), (
        "order {count} [portions of] {dish} [please].", "I (want|would like) to order {count} {dish}.", "(get|bring) me {count} {dish} [please].")),
    Kind(("add_to_list", "shopping_list", "add_item"), "Add an item to the shopping list.", (_s("item", lambda w: w.choice("FOODS")),), (
        "(add|put) {item} (to|on) (the|my) [shopping] list [please].", "(we|I) need [to buy] {item}.", "{item} on the shopping list [please].")),
    Kind(("create_event", "add_event", "calendar_add"), "Add an event to the calendar.", (_s("title", lambda w: w.phrase(1, 3)), _s("date", Words.date), _s("time", Words.clock_time)), (
        "(add|put|create) {title} (in|to|into) my calendar on {date} at {time}.", "(schedule|plan) {title} (for|on) {date} at {time}.", "(create|make|new) [an] event {title} on {date} at {time}")),
    Kind(("list_events", "show_calendar", "agenda"), "List the events of a day.", (_s("date", Words.date),), (
        "(what is|what's|show me what is) (on|in) my (calendar|agenda) on {date}?", "(list|show) [me] [my] events on {date}.", "(do I have|have I got) (anything|events|meetings) on {date}?")),
    Kind(("create_task", "add_todo", "new_task"), "Create a task.", (_s("title", lambda w: w.phrase(1, 4)), _e("priority", "low medium high")), (
        "(create|add|make) a {priority} priority task {title}.", "(add|put) {title} to my tasks with {priority} priority.", "new task {title}, priority {priority}")),
    Kind(("read_file", "open_file", "cat"), "Read a file.", (_s("path", lambda w: f"{w.coined()}/{w.coined()}.{w.rng.choice(('txt', 'md', 'py', 'csv'))}"),), (
        "(read|open|show [me]|print) [the file] {path} [please].", "what is in [the file] {path}?", "(display|give me) the content[s] of {path}.")),
    Kind(("write_file", "save_file"), "Write text to a file.", (_s("path", lambda w: f"{w.coined()}.{w.rng.choice(('txt', 'md', 'log'))}"), _s("content", lambda w: w.phrase(1, 4))), (
        "(write|save|put) {content} (to|into|in) [the file] {path}.", "(save|store) the text {content} as {path}.")),
    Kind(("run_query", "sql", "query_database"), "Count the rows of a table.", (_s("table", lambda w: f"{w.noun().replace(' ', '_')}s"),), (
        "how many rows are in [the table] {table}?", "(count|query) the (rows of|table) {table}.")),
    Kind(("get_user", "find_user", "lookup_user"), "Look up a user.", (_i("user_id", 1, 99999),), (
        "(find|get|look up|show [me]) [the] user [with id|number] {user_id}.", "who is user {user_id}?", "(which|what) user has [the] id {user_id}?")),
    Kind(("create_user", "add_user"), "Create a user account.", (_s("name", Words.first_name), Argument("admin", "boolean", lambda w: w.rng.random() < 0.5, "Whether the user is an administrator")), (
        "(create|add) [a|the] user {name} {admin} admin rights.", "(make|open) an account for {name} {admin} admin rights.")),
    Kind(("define_word", "dictionary", "define"), "Look a word up in the dictionary.", (_s("word", Words.coined),), (
        "(define|look up) [the word] {word} [in the dictionary].", "what does [the word] {word} mean?", "(what is the|give me the|I need the) (meaning|definition) of {word} [?]")),
    Kind(("find_place", "nearby", "search_places"), "Find places nearby.", (_s("kind", lambda w: w.choice("PLACES")), _s("city", Words.city)), (
        "(find|show [me]|search) a {kind} in {city}.", "(is there|where is) a {kind} in {city}?", "I (need|am looking for) a {kind} in {city}.")),
    Kind(("get_route", "directions", "navigate"), "Directions from one place to another.", (_s("start", Words.city), _s("end", Words.city), _e("mode", "car bike foot bus")), (
        "how do I get from {start} to {end} by {mode}?", "(show [me]|give me|find) the (way|route) from {start} to {end} by {mode}.", "(directions|route) from {start} to {end} by {mode}")),
    Kind(("roll_dice", "dice"), "Roll dice.", (_i("sides", 4, 100), _i("count", 1, 20)), (
        "roll {count} dice with {sides} sides [please].", "(throw|roll) {count} {sides}-sided dice.")),
    Kind(("get_news", "news", "headlines"), "Get the news about a topic.", (_s("topic", Words.topic),), (
        "(what is|what's|show me|give me|get|read) the [latest] news (about|on) {topic}.", "(any|is there) news (about|on) {topic}?", "news about {topic}")),
    Kind(("search_web", "web_search", "google"), "Search the web.", (_s("query", lambda w: w.rng.choice((w.topic(), w.phrase(1, 3)))),), (
        "(search|look) the (web|internet) for {query}.", "(google|look up) {query} [online|on the web].", "(find|search) {query} (online|on the internet|on the web).")),
    Kind(("create_ticket", "open_issue", "report_bug"), "Open a ticket.", (_s("summary", _some_text), _e("severity", "minor major critical")), (
        "(open|create|file) a {severity} ticket: {summary}", "(report|file) a {severity} (bug|issue): {summary}", "new {severity} ticket: {summary}")),
    Kind(("lock_door", "door", "set_lock"), "Lock or unlock a door.", (_s("door", lambda w: w.choice("PLACES")), _e("action", "lock unlock")), (
        "{action} the {door} door [please|now].", "(please|can you|could you) {action} the door of the {door}.")),
    Kind(("pay", "transfer_money", "send_money"), "Transfer money to a person.", (_s("recipient", Words.first_name), _i("amount", 1, 9999)), (
        "(pay|send|transfer|give) {amount} euros to {recipient} [please].", "(pay|send) {recipient} {amount} euros [now].", "transfer {amount} to {recipient}.")),
    Kind(("track_parcel", "parcel_status", "track"), "Track a parcel.", (_s("number", Words.code),), (
        "(where is|track|find) [my|the] parcel {number}.", "(what is|what's) the status of [my] parcel {number}?", "(where|when) (is|comes) my (package|parcel) {number}?")),
)  # fmt: skip

_COMPOSED_VERBS = tuple(lexicon.TOOL_VERBS.split())
_COMPOSED_NOUNS = tuple(lexicon.TOOL_NOUNS.split())
_COMPOSED_ARGUMENTS = tuple(lexicon.TOOL_ARGUMENTS.split())
_NUMERIC = frozenset(lexicon.NUMERIC_ARGUMENTS.split())


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one tool, with the arguments that it should be called with."""

    tool: Tool
    text: str
    arguments: dict[str, Value]
    topic: str


def _mine(items: list[str] | tuple[str, ...], split: Split) -> list[str]:
    return [item for item in items if is_held_out(f"tool {item}") == (split == "test")]


def draw(scene: Scene) -> Request:
    """A random request. Scored are only tools whose names training has not seen."""
    if scene.split == "train" and scene.rng.random() < 0.4:
        return _everyday(scene)
    return _composed(scene)


def _everyday(scene: Scene) -> Request:
    rng, words = scene.rng, scene.words
    kind = rng.choice(KINDS)
    name = rng.choice(kind.names)
    arguments = list(kind.arguments)
    values = {argument.name: argument.draw(words) for argument in arguments}
    if len({str(v) for v in values.values()}) < len(values):
        return _everyday(scene)
    template = typed(rng, scene.typing, pick(rng, scene.split, kind.requests))
    shuffled = arguments if rng.random() < 0.7 else rng.sample(arguments, len(arguments))
    schema = function_tool(
        name, kind.about, {g.name: g.schema(words) for g in shuffled}, [g.name for g in arguments]
    )
    ordered = {g.name: values[g.name] for g in shuffled}
    said = {
        k: v if not isinstance(v, bool) else "with" if v else "without" for k, v in values.items()
    }
    return Request(schema, fill(template, **said), ordered, name.replace("_", " "))


def _composed(scene: Scene) -> Request:
    rng, words = scene.rng, scene.words
    verb, noun = (
        rng.choice(_mine(_COMPOSED_VERBS, scene.split)),
        rng.choice(_mine(_COMPOSED_NOUNS, scene.split)),
    )
    # Training coins most names: what is known by heart is not copied.
    coined_share = 0.5 if words.pieces else 0.1
    if rng.random() < 0.25:
        noun = words.noun()
    if rng.random() < coined_share:
        verb = words.coined()
    names = rng.sample(
        _mine(_COMPOSED_ARGUMENTS, scene.split), rng.choices((1, 2, 3), (3, 4, 2))[0]
    )
    names = [words.coined() if rng.random() < coined_share else name for name in names]
    made: dict[str, dict[str, Any]] = {}
    values: dict[str, Value] = {}
    parts: list[str] = []
    for name in names:
        made[name], values[name], part = _argument(words, name)
        parts.append(part)
    slug = noun.replace(" ", "_")
    tool_name = rng.choice(
        (
            f"{verb}_{slug}",
            f"{verb}_{slug}",
            f"{slug}_{verb}",
            f"{verb}{slug.title().replace('_', '')}",
            f"{slug}.{verb}",
        )
    )
    about = rng.choice(
        (
            f"{capitalised(verb)} {a(noun)}.",
            f"{capitalised(verb)}s {a(noun)}",
            f"{capitalised(verb)} the {noun}.",
            "",
        )
    )
    order = rng.sample(parts, len(parts)) if rng.random() < 0.3 else parts
    head = rng.choice((f"{verb} {a(noun)}", f"{verb} the {noun}", f"please {verb} {a(noun)}", f"can you {verb} {a(noun)}",
                       f"I want you to {verb} {a(noun)}", f"{verb} my {noun}", f"I need to {verb} {a(noun)}"))  # fmt: skip
    text = rng.choice(
        (
            f"{head} with {joined(order)}",
            f"{head}, {', '.join(order)}",
            f"{head}: {', '.join(order)}",
            f"{head} {' '.join(order)}",
        )
    )
    text = capitalised(text) if rng.random() < 0.5 else text
    required = names if rng.random() < 0.8 else names[:1]
    return Request(
        function_tool(tool_name, about, made, required),
        text + rng.choice(("", ".", "")),
        values,
        f"the {noun}",
    )


def _argument(words: Words, name: str) -> tuple[dict[str, Any], Value, str]:
    """Schema, value and wording of one argument of a composed tool."""
    rng = words.rng
    kind = rng.randrange(10)
    described = {
        "description": rng.choice(
            (f"The {name}", f"{capitalised(name)} to use", f"the {name} of it", name)
        )
    }
    about = described if rng.random() < 0.6 else {}
    if kind == 0:
        value = rng.random() < 0.5
        return {"type": "boolean", **about}, value, f"{'with' if value else 'without'} {name}"
    if kind == 1:
        options = list(dict.fromkeys(words.noun() for _ in range(rng.randint(2, 4))))
        chosen = rng.choice(options)
        return (
            {"type": "string", "enum": options, **about},
            chosen,
            _worded(rng.randrange(4), name, chosen),
        )
    if name in _NUMERIC or kind == 2:
        number = words.number(1, 99999)
        return (
            {"type": rng.choice(("integer", "number")), **about},
            number,
            _worded(rng.randrange(4), name, str(number)),
        )
    text = rng.choice(
        (words.first_name(), words.phrase(1, 2), words.proper(), words.coined(), words.city())
    )
    return {"type": "string", **about}, text, _worded(rng.randrange(4), name, text)


def _worded(kind: int, name: str, value: str) -> str:
    return (f"{name} {value}", f"the {name} {value}", f"{name} = {value}", f"{name} {value}")[kind]


def other_tool(scene: Scene) -> Tool:
    """A tool that is offered and not needed."""
    return draw(scene).tool


def function(scene: Scene) -> None:
    """A request for an unseen tool, its call, its result and a sentence about it."""
    asked = []
    for _ in range(scene.rng.randint(1, 3) if scene.is_dense else 1):
        wanted = draw(scene)
        if not scene.has_tool(wanted.tool["function"]["name"]):
            scene.tools.insert(scene.rng.randint(0, len(scene.tools)), wanted.tool)
            asked.append(wanted)
    for wanted in asked:
        request(scene, wanted)


def request(scene: Scene, wanted: Request) -> None:
    """The turns for a request whose tool is already offered."""
    name = str(wanted.tool["function"]["name"])
    scene.user(wanted.text)
    scene.about(wanted.topic, capitalised(wanted.topic))
    scene.call(name, wanted.arguments)
    result, answer = outcome(scene.words, name)
    scene.result(result)
    scene.answer(answer)


def outcome(words: Words, name: str) -> tuple[str, str]:
    """A tool's result and the sentence that reports it."""
    rng = words.rng
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(
            ("ok", "done", "success", '{"ok": true}', '{"status": "ok"}', "true", "OK", "")
        ), "Done."
    if kind == 1:
        reason = rng.choice(
            (
                f"no such {words.noun()}",
                f"{words.noun()} not found",
                "timed out",
                f"{words.coined()} is not allowed",
                f"bad value {words.token()}",
            )
        )
        return f"error: {reason}", f"The tool {name} reports an error: {reason}."
    if kind < 5:
        rows = {_field(words): _plain(words) for _ in range(rng.randint(1, 3))}
        said = joined([f"the {key} is {value}" for key, value in rows.items()])
        return json.dumps(rows, ensure_ascii=False), f"{capitalised(said)}."
    if kind < 7:
        sentence = _sentence(words)
        return sentence, sentence
    value = _plain(words)
    return str(value), f"The result is {value}."


def _field(words: Words) -> str:
    if words.pieces and words.rng.random() < 0.5:
        return words.coined()
    return words.rng.choice(_mine(_COMPOSED_ARGUMENTS, words.split))


def _plain(words: Words) -> Value:
    rng = words.rng
    return rng.choice(
        (
            words.number(0, 9999),
            words.token(),
            words.phrase(1, 3),
            words.amount(),
            words.first_name(),
        )
    )


def _sentence(words: Words) -> str:
    rng = words.rng
    noun = words.noun()
    return rng.choice((
        f"The {noun} was {words.choice('VERBS').split(':')[1]} at {words.clock_time()}.", f"{words.amount()} were booked for {words.first_name()}.",
        f"It is {words.number(1, 40)} degrees and {words.choice('ADJECTIVES')} in {words.city()}.", f"{capitalised(noun)} {words.code()} is {words.choice('ADJECTIVES')}.",
        f"The next one leaves at {words.clock_time()} from {words.city()}."))  # fmt: skip
