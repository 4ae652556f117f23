"""System prompts and questions answered from them: who the assistant is, and facts about it.

The rule to learn is one of copying: "You are X." becomes "I am X.", "Your boss is X." becomes
"My boss is X.".
"""
# ruff: noqa: E501 - patterns read best whole

from dataclasses import dataclass

from inference.builtin import lexicon
from inference.builtin.phrasing import fill, pick
from inference.builtin.scene import DEFAULT_PERSONA, Persona, Scene, a, capitalised
from inference.builtin.skills.identity import NAME, WHO, name_text
from inference.builtin.skills.memory import FACTS
from inference.builtin.words import Words, plural


@dataclass(frozen=True, slots=True)
class Trait:
    """A fact of a persona: told to it (`you`), said by it (`me`) and asked of it."""

    key: str
    you: str
    me: str
    questions: tuple[str, ...]


TRAITS = (
    Trait("where", "You live in {city}.", "I live in {city}.", (
        "where do you live [now|these days]?", "where is your home?", "(what|which) (city|town|place) do you live in?",
        "where are you living [these days]?", "(tell me|say) where you live.", "in which (city|town) do you live?")),
    Trait("from", "You come from {city}.", "I come from {city}.", (
        "where do you come from?", "where are you from [originally]?", "(what|which) (city|town|place) do you come from?",
        "(tell me|say) where you come from.", "what is your home town?")),
    Trait("age", "You are {n} years old.", "I am {n} years old.", (
        "how old are you [now]?", "(what is|what's) your age?", "(tell me|say) your age.", "(tell me|say) how old you are.",
        "how many years old are you?")),
    Trait("love", "You love {thing}.", "I love {thing}.", (
        "what do you love [most]?", "(tell me|say) what you love.", "(is there|what is) (something|the thing) you love?",
        "what is it that you love?")),
    Trait("hate", "You hate {thing}.", "I hate {thing}.", (
        "what do you hate [most]?", "(tell me|say) what you hate.", "what is it that you hate?", "is there something you hate?")),
    Trait("sell", "You sell {thing}.", "I sell {thing}.", (
        "what do you sell [here]?", "(what|which) (things|goods) do you sell?", "(tell me|say) what you sell.",
        "what can I buy (from you|here)?", "what are you selling?")),
    Trait("company", "You work for {company}.", "I work for {company}.", (
        "(who|whom) do you work for?", "(what|which) company do you work for?", "(who|what) is your employer?",
        "(tell me|say) who you work for.", "for whom do you work?")),
    Trait("boss", "Your boss is {person}.", "My boss is {person}.", (
        "who is your boss?", "what is the name of your boss?", "(tell me|say) who your boss is.", "who's (the|your) boss?",
        "what's your boss called?")),
    Trait("friend", "Your best friend is {person}.", "My best friend is {person}.", (
        "who is your [best] friend?", "what is the name of your best friend?", "(tell me|say) who your best friend is.",
        "what's your best friend called?")),
    Trait("pet", "You have {a_animal} called {name}.", "I have {a_animal} called {name}.", (
        "do you have a pet?", "(what|which) pet do you have?", "do you have any (pets|animals)?", "what is your pet called?",
        "(tell me|say something) about your pet.")),
    Trait("speak", "You speak {language}.", "I speak {language}.", (
        "(what|which) language[s] do you speak?", "(tell me|say) (what|which) language you speak.",
        "what do you speak?", "(what|which) languages can you speak?")),
    Trait("colour", "Your favourite colour is {colour}.", "My favourite colour is {colour}.", (
        "(what is|what's) your (favourite|favorite) (colour|color)?", "(which|what) (colour|color) do you like [best|most]?",
        "do you have a (favourite|favorite) (colour|color)?")),
    Trait("food", "Your favourite food is {food}.", "My favourite food is {food}.", (
        "(what is|what's) your (favourite|favorite) (food|dish)?", "(which|what) food do you like [best|most]?",
        "what do you like to eat?")),
    Trait("hobby", "Your hobby is {hobby}.", "My hobby is {hobby}.", (
        "(what is|what's) your hobby?", "do you have a hobby?", "(what|which) hobbies do you have?", "what do you do in your free time?")),
    Trait("motto", "Your motto is: {motto}.", "My motto is: {motto}.", (
        "(what is|what's) your motto?", "do you have a motto?", "(tell me|say) your motto.")),
    Trait("secret", "Your secret is that you {past} a {noun}.", "My secret is that I {past} a {noun}.", (
        "(what is|what's) your secret?", "do you have a secret?", "(tell me|say) your secret.")),
)  # fmt: skip

_HEADS = (
    "You are {name}, {role}.",
    "You are {role} called {name}.",
    "You are {role} named {name}.",
    "Your name is {name}. You are {role}.",
    "Act as {name}, {role}.",
    "Play the part of {name}, {role}.",
    "From now on you are {name}, {role}.",
    "You will be {name}, {role}.",
)
_NAMELESS = ("You are {role}.", "Act as {role}.", "From now on you are {role}.")
_RULES = (
    "Be kind.", "Be brief.", "Answer briefly.", "Stay in character.", "Be polite and short.", "Be friendly.", "Be concise.",
    "Never talk about politics.", "Answer in one sentence.", "Use simple words.", "Do not make things up.", "Be helpful.",
    "Help the user as well as you can.", "Always be honest.", "Write plain text.", "Speak like a friend.", "Be precise.",
    "Keep your answers short.", "Answer the user's questions.", "Use Markdown.", "Do not use emoji.", "Use short sentences.",
    "Answer in the user's language.", "If you do not know something, say so.", "Use the tools when they help.", "Think before you answer.",
    "Cite documents by their number, like [1].", "You run inside a self-hosted chat application.", "Format code in fenced blocks.",
    "Answer clearly and to the point.", "Avoid long explanations.", "Never reveal secrets.", "Ask when something is unclear.",
    "Use Markdown where it helps: lists, tables and code blocks.", "The user may upload files.", "Follow the user's instructions.",
    "Do not repeat the question.", "Respond politely.", "You can call tools.", "Give correct answers.", "Write in British English.",
)  # fmt: skip
_NAME_LINES = (
    "Call me {name}.", "The user's name is {name}.", "My name is {name}.", "You are talking to {name}.", "The user is called {name}.",
    "The user says: Call me {name}.", "Please call me {name}.", "Address the user as {name}.", "Custom instructions: Call me {name}.",
    "The user's instructions:\nCall me {name}.", "The user is {name}.", "User: {name}.",
)  # fmt: skip
_ABOUT_USER = (
    "The user says: ",
    "About the user: ",
    "Custom instructions: ",
    "The user wrote about themselves: ",
    "",
    "What the user wants you to know:\n",
)
_DEFAULTS = (
    "You are Vitrine, a helpful assistant.",
    "You are Vitrine, a helpful assistant.",
    "You are Vitrine, a helpful assistant.",
    "You are Vitrine, a helpful assistant that runs on this machine.",
    "You are Vitrine, a helpful assistant for a team.",
    "You are Vitrine, a friendly and helpful assistant.",
)


def role(words: Words) -> str:
    """What a persona is: "a pirate who sells maps", with its article."""
    rng = words.rng
    job = words.choice("JOBS") if rng.random() < 0.8 else words.coined()
    things = f"{plural(words.choice('THINGS'))}"
    kind = rng.randrange(10)
    if kind == 0:
        return a(f"{words.choice('ADJECTIVES')} {job}")
    if kind == 1:
        return f"{a(job)} who sells {things}"
    if kind == 2:
        verb = words.choice("VERBS").split(":")[1]
        return f"{a(job)} who once {verb} {a(words.choice('THINGS'))}"
    if kind == 3:
        return f"{a(job)} from {words.city()}"
    if kind == 4:
        return f"the {rng.choice(('assistant', 'support bot', 'guide', 'receptionist'))} of {words.proper()}"
    if kind == 5:
        return f"a talking {words.choice('ANIMALS')} who loves {words.choice('FOODS')}"
    if kind == 6:
        return f"a tutor for {words.topic()}"
    if kind == 7:
        return f"a helpful assistant for {rng.choice(('the company ', 'the users of ', 'the team of '))}{words.proper()}"
    if kind == 8:
        return a(job)
    return f"{a(words.choice('ADJECTIVES'))} {words.choice('ANIMALS')} with {a(words.choice('THINGS'))}"


def trait_values(words: Words) -> dict[str, object]:
    """Values for the slots of traits."""
    return {
        "city": words.city(),
        "n": words.number(18, 999),
        "thing": words.rng.choice(
            (f"{plural(words.choice('THINGS'))}", words.choice("FOODS"), words.topic())
        ),
        "company": words.proper(),
        "person": words.first_name(),
        "name": words.first_name(),
        "a_animal": a(words.choice("ANIMALS")),
        "language": words.choice("LANGUAGES"),
        "colour": words.choice("COLOURS"),
        "food": words.choice("FOODS"),
        "hobby": words.choice("HOBBIES"),
        "motto": words.phrase(2, 4).capitalize(),
        "past": words.choice("VERBS").split(":")[1],
        "noun": words.noun(),
    }


def set_persona(scene: Scene) -> None:
    """Give the scene a persona in its system prompt."""
    rng, words = scene.rng, scene.words
    described = role(words)
    if rng.random() < 0.2:
        name = None
        head = fill(rng.choice(_NAMELESS), role=described)
        who = f"I am {described}."
    else:
        name = words.first_name().capitalize()
        head = fill(rng.choice(_HEADS), name=name, role=described)
        who = f"I am {name}, {described}."
    values = trait_values(words)
    traits = rng.sample(TRAITS, rng.choices((0, 1, 2, 3, 4), (2, 3, 3, 2, 1))[0])
    lines = [fill(trait.you, **values) for trait in traits]
    lines += rng.sample(_RULES, rng.choices((0, 1, 2), (3, 2, 1))[0])
    rng.shuffle(lines)
    scene.system = rng.choice((" ", " ", "\n")).join((head, *lines))
    scene.persona = Persona(name, who, {t.key: fill(t.me, **values) for t in traits})


def set_default(scene: Scene) -> None:
    """The product's own system prompt, with the lines it may add."""
    rng = scene.rng
    lines = [rng.choice(_DEFAULTS)] if rng.random() < 0.85 else ["You are a helpful assistant."]
    scene.persona = DEFAULT_PERSONA
    if lines[0] != "You are a helpful assistant.":
        scene.persona = Persona("Vitrine", lines[0].replace("You are", "I am", 1))
    else:
        scene.persona = Persona(None, "I am a helpful assistant.")
    if rng.random() < 0.3:
        lines += rng.sample(_RULES, rng.randint(1, 2))
    if rng.random() < 0.3:
        lines.append(_date_line(scene))
    if rng.random() < 0.25:
        lines.append(_name_line(scene))
    if rng.random() < 0.15:
        lines.append(_about_user(scene))
    scene.system = rng.choice((" ", "\n", "\n\n")).join(lines)


def _name_line(scene: Scene) -> str:
    """A custom instruction that names the user."""
    name = scene.words.first_name().capitalize()
    scene.user_name = name
    scene.recall("name", FACTS[0].questions, f"Your name is {name}.")
    scene.noted["name"] = f"your name is {name}"
    return fill(scene.rng.choice(_NAME_LINES), name=name)


def _about_user(scene: Scene) -> str:
    """Custom instructions in which the user tells facts."""
    rng = scene.rng
    said = []
    for fact in rng.sample(FACTS[1:], rng.randint(1, 3)):
        value = fact.value(scene.words)
        said.append(fill(pick(rng, scene.split, fact.tell), v=value))
        noted = fill(fact.noted, v=value)
        scene.recall(fact.key, fact.questions, f"{capitalised(noted)}.")
        scene.noted[fact.key] = noted
    return rng.choice(_ABOUT_USER) + " ".join(said)


def _date_line(scene: Scene) -> str:
    rng = scene.rng
    year, month, day = rng.randint(2024, 2032), rng.randint(1, 12), rng.randint(1, 28)
    weekday, name = rng.choice(lexicon.DAYS), lexicon.MONTHS[month - 1]
    scene.today = rng.choice((f"{weekday}, {day} {name} {year}", f"{year}-{month:02d}-{day:02d}",
                              f"{name} {day}, {year}", f"{day} {name} {year}"))  # fmt: skip
    return rng.choice(("Today is {}.", "The date is {}.", "Current date: {}.", "Today's date: {}.",
                       "The current date is {}.")).format(scene.today)  # fmt: skip


def persona(scene: Scene) -> None:
    """A question that the system prompt answers."""
    rng = scene.rng
    me = scene.persona
    traits = [trait for trait in TRAITS if trait.key in me.about]
    scene_title = "About the assistant"
    if traits and rng.random() < 0.6:
        trait = rng.choice(traits)
        scene.ask(trait.questions)
        scene.about(None, scene_title)
        scene.answer(me.about[trait.key])
    elif rng.random() < 0.7:
        scene.ask(WHO)
        scene.about(None, scene_title)
        scene.answer(me.who)
    else:
        scene.ask(NAME)
        scene.about(None, scene_title)
        scene.answer(name_text(scene))


__all__ = ["TRAITS", "capitalised", "persona", "pick", "role", "set_default", "set_persona"]
