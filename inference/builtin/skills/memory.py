"""Facts that the user tells and asks for later: told, kept, corrected, asked, or never told."""
# ruff: noqa: E501 - patterns read best whole

from collections.abc import Callable
from dataclasses import dataclass

from inference.builtin import lexicon
from inference.builtin.phrasing import MORE, UNSCORED, fill
from inference.builtin.scene import Scene, a, capitalised, joined
from inference.builtin.words import Words, plural, words_of


@dataclass(frozen=True, slots=True)
class Fact:
    """Something about the user. `noted` is what the assistant says of it: "you live in {v}"."""

    key: str
    value: Callable[[Words], str]
    tell: tuple[str, ...]
    noted: str
    questions: tuple[str, ...]


def _remembered(thing: str) -> tuple[str, ...]:
    """Ways to ask for "my dog's name" and the like."""
    return (
        f"(what is|what's|whats|what was) {thing} [again]?",
        f"(do you remember|can you remember|do you know|do you recall|can you tell me|tell me|remind me) (what {thing} is|what {thing} was|{thing}) [please]?",
        f"(say|give me|repeat|recall) {thing} [again] [please].",
        f"I forgot {thing}, (what is it|can you help|what was it)?",
        f"and {thing}?",
        f"which (one|thing) did I say is {thing}?",
    )  # fmt: skip


FACTS = (
    Fact("name", Words.first_name, (
        "my name is {v}.", "(I am|I'm) {v}.", "(call me|you can call me|please call me|people call me|everyone calls me) {v}.",
        "(hello|hi|hey), (my name is|my name's|I am|I'm|this is) {v}.", "(I am|I'm) called {v}.", "the name is {v}.",
        "name's {v}.", "this is {v} [speaking|here].", "(you are|you're) (talking|speaking) to {v}.", "let me introduce myself: I am {v}.",
        "{v} is my name.", "my friends call me {v}.", "(just so you know|for the record|by the way), my name is {v}.",
        "it's {v} here.", "you may call me {v}.", "I go by {v}.", MORE, "(good morning|good evening|hello there|hi there|oh hi), (this is|it's|it is|I'm) {v} [speaking|here|again].", "{v} (speaking|here|is who I am).", "(it is|it's) {v} (speaking|who is speaking|talking).", "(this is|here is) {v} (who is speaking|talking|on the line)."), "your name is {v}", (
        *_remembered("my name"), "who am I?", "(what am I|how am I) called?", "(do you know|do you remember|tell me|can you tell me) who I am?",
        "what did I say my name (is|was)?", "(who are you|with whom are you|who do you think you are) (talking|speaking) to [now]?",
        "do you (remember|know|recall) me?", "how do you call me?", "what do you call me?",
        "what should you call me?", "say my name [please].", "which name did I (give|tell) you?", MORE, "(what|which) name do I have?")),
    Fact("city", Words.city, (
        "I live in {v}.", "(I am|I'm) living in {v} [now|these days].", "my home is in {v}.", "(I have|I've) lived in {v} for years.",
        "{v} is where I live.", "I (just|recently) moved to {v}, so I live in {v}.", "my home town is {v}.", MORE, "{v} is where I (live|am at home|have my flat)."), "you live in {v}", (
        "where do I live [now|again]?", "(what|which) (city|town|place) do I live in?", "(in which|in what) (city|town) do I live?",
        "(do you remember|do you know|tell me|can you tell me|remind me) where I live [please]?", "where is my home?", "where am I living?",
        "where did I say I live?")),
    Fact("origin", Words.city, (
        "I come from {v}.", "(I am|I'm) from {v} [originally].", "I was (born|born and raised) in {v} [originally|as a matter of fact].", "I grew up in {v}.", MORE, "{v} is where I (come from|was born|grew up).", "(I was|we were) (raised|brought up) in {v}.", "my (birthplace|place of birth) is {v}.", "(originally|by birth), I (am|come) from {v}."), "you come from {v}", (
        "where (do I come|am I) from [again|originally]?", "(what|which) (city|town|place) (do I come|am I) from?",
        "(do you remember|tell me|can you tell me|do you know) where I (come|am) from [please]?", "where did I say I come from?")),
    Fact("job", lambda w: a(w.choice("JOBS") if w.rng.random() < 0.8 else w.coined()), (
        "I work as {v}.", "(I am|I'm) {v} [by profession|by trade].", "my job is being {v}.", "I earn my living as {v}.",
        "(professionally|by profession), I am {v}.", "I have a job as {v}.", "(I've|I have) worked as {v} for years.", MORE, "(professionally|by profession|by trade|in my day job|at work), (I am|I'm|I work as) {v}.", "(being|working as) {v} is (my job|what I do).", "{v} is what I am (by trade|by profession|at work).", UNSCORED, "{v} is what I am (on weekdays|in my working life|at the office|in my job|during the day|all day long).", "(at work|at the office|in my job|on weekdays), {v} is what I am.", "what I am at work is {v}.", "I am {v} (at work|at the office|when I work|on weekdays)."), "you work as {v}", (
        "(what is|what's|what was) my (job|profession|occupation) [again]?", "what do I do [for a living|for work]?",
        "what do I work as?", "(do you remember|tell me|can you tell me|do you know|remind me) what (I do for a living|my job is|my profession is|I work as) [please]?",
        "what is it that I do for a living?", "how do I earn my living?", MORE, "what (do I|is it I) do (all day|at work|in my job|professionally)?")),
    Fact("age", lambda w: str(w.number(8, 120)), (
        "(I am|I'm) {v} years old.", "(I am|I'm) {v} years of age.", "my age is {v}.", "I (just turned|turned|will soon be) {v} years old [today|last week].", MORE, "I (just turned|turned) {v} years old [today|last week].", "I will (soon|shortly) be {v} years old.", "{v} is my age.", "I am {v} [of age|now]."), "you are {v} years old", (
        "how old am I [now|again]?", "(what is|what's|what was) my age [again]?", "(do you remember|tell me|can you tell me|do you know) (my age|how old I am) [please]?",
        "how old did I say I am?", "(say|repeat|give me) my age.")),
    Fact("employer", Words.proper, (
        "I work (for|at) {v}.", "my employer is {v}.", "(I am|I'm) employed (by|at) {v}.", "I have a job at {v}.", MORE, "I have a job (at|with) {v}.", "(the company|the firm) I work for is {v}.", "{v} (employs me|is my employer|is where I work|is the company I work for).", "(I am|I'm) (with|working for|working at) {v}."), "you work for {v}", (
        "(where|for whom|who) do I work [for]?", "(what|which) company do I work for?", "(who|what) is my employer?",
        "(do you remember|tell me|can you tell me|do you know) (where I work|who I work for|my employer) [please]?", MORE, "(who|what) is my employer [again]?", "(for whom|for which company|for what company) do I work [again]?", "(whom|who|what company) (do I work|am I working) for?", "who employs me?")),
    Fact("likes", lambda w: w.rng.choice((w.choice("FOODS"), w.choice("HOBBIES"), w.topic(), plural(w.choice("ANIMALS")))), (
        "I (really like|like|enjoy) {v}.", "(I am|I'm) (fond of|a fan of|into) {v}.", "{v} is what I like [most|best].", "what I like is {v}.", MORE, "what I like [most|best] is {v}.", "(the thing|something|a thing) I (like|like most|like best|love) is {v}.", "I (love|adore|like best|like most) {v}.", "{v} is (my favourite thing|something I like|something I love|what I love most).", UNSCORED, "{v} is what I (love best|love above all|enjoy best|enjoy most|like above all|like more than anything).", "{v} is (the thing|a thing) [that] I like (best|a lot|very much).", "what I (like|love) (above all|very much|a lot) is {v}."), "you like {v}", (
        "what do I like [again|most]?", "(do you remember|tell me|can you tell me|do you know|remind me) what I like [please]?",
        "what did I say I like?", "what is it that I like?", "(which|what) thing do I like?", MORE, "what is it that I (like|love)?", "(which|what) thing (do I like|did I say I like|is it that I like) [best]?", "(say|tell me|name) what I like [please].")),
    Fact("dislikes", lambda w: w.rng.choice((w.choice("FOODS"), w.choice("HOBBIES"), plural(w.choice("ANIMALS")))), (
        "I (really hate|hate|dislike|cannot stand|do not like|don't like) {v}.", "{v} is what I hate.", MORE, "I (really|just|simply) (cannot stand|can't stand|cannot bear|do not like|dislike) {v} [at all].", "(what|something|one thing) I (cannot stand|can't stand|hate|dislike|do not like) is {v}.", "{v} is (what|something) I (cannot stand|can't stand|dislike|do not like)."), "you do not like {v}", (
        "what do I (hate|dislike|not like) [again]?", "(do you remember|tell me|can you tell me|do you know) what I (hate|dislike|do not like) [please]?",
        "what did I say I (hate|do not like)?")),
    Fact("allergy", lambda w: w.choice("FOODS"), (
        "(I am|I'm) allergic to {v}.", "I have an allergy to {v}.", "I cannot eat {v} because of an allergy.", MORE, "(there is|there's) an allergy to {v} that I have.", "{v} (makes me ill|gives me a rash), (I am|I'm) allergic to it.", "(an|my) allergy to {v} is what I have.", "(I suffer|I do suffer) from an allergy to {v}."), "you are allergic to {v}", (
        "what am I allergic to [again]?", "(what is|what's) my allergy?", "(do you remember|tell me|can you tell me|do you know) what I am allergic to [please]?",
        "(which|what) (food|foods) am I allergic to?", "do I have an allergy?", MORE, "(which|what) (food|foods|meals|dish) (can I not eat|must I not eat|should I not eat)?", UNSCORED, "(to which|to what) (food|foods|thing|things) am I allergic?", "(which|what) (things|meals|stuff|dishes) am I allergic to [again]?", "my allergy, what (is it|was it) [again]?", "(which|what) (food|foods) (give me an allergy|am I ill from|do I have an allergy to)?")),
    Fact("goal", lambda w: f"{w.choice('VERBS').split(':')[0]} {a(w.choice('THINGS'))}", (
        "I (want|plan|would like|hope) to {v} [this year|soon|tomorrow|next week].", "my goal is to {v}.", "my plan is to {v}.", MORE, "my (goal|plan|wish|hope|aim) is to {v} [this year|soon].", "(I am|I'm) (planning|hoping|going) to {v} [soon|tomorrow]."), "you want to {v}", (
        "what do I want to do [again]?", "(what is|what's) my (goal|plan)?", "(do you remember|tell me|can you tell me|do you know) what I want to do [please]?",
        "what (am I planning|do I plan|did I say I want) to do?")),
    Fact("language", lambda w: w.choice("LANGUAGES"), (
        "I speak {v} [at home].", "my mother tongue is {v}.", "(I am|I'm) learning {v}.", "my (native|first|own|home) language is {v} [of course].", MORE, "(the language|what) I speak [at home] is {v}.", "{v} is (my language|my native language|my first language|my home language|the language I speak|my mother tongue).", "(at home|as a child), I (spoke|speak) {v}.", "I (can speak|know) {v}.", UNSCORED, "my (home|family|everyday|main) language (has always been|was always|would be) {v}.", "(the language of my home|my language at home|our language at home) is {v}.", "(at home|with my family) (we speak|my language is|we talk in) {v}."), "you speak {v}", (
        "(what|which) language do I speak [at home]?", "(do you remember|tell me|can you tell me|do you know) (what|which) language I speak [please]?")),
)  # fmt: skip

_OWNED = tuple(lexicon.RELATIONS.split())
_ATTRIBUTES = ["phone number", "favourite colour", "favourite food", "favourite animal", "favourite city", "favourite number", "favourite sport", "favourite drink", "favourite book", "favourite word", "lucky number", "shoe size", "birthday", "password", "room number", "seat", "flight number", "order number", "user name", "locker code", "car", "bike", "street", "house number", "budget", "deadline", "meeting", "appointment", "project", "team", "code name", "wifi password", "customer number", "ticket number", "nickname", "surname", "last name", "middle name", "hometown", "dream", "instrument", "hobby", "holiday destination", "hotel", "school", "train", "favourite film", "favourite song", "email address", "bank", "goal", "desk", "parking spot", "table number", "badge number"]  # fmt: skip

_TELL_ATTRIBUTE = (
    "my {k} is {v}.", "(remember|please remember|note|keep in mind|don't forget|do not forget) that my {k} is {v}.",
    "{v} is my {k}.", "(by the way|just so you know|for later|for the record|you should know), my {k} is {v}.",
    "(I want you|I'd like you) to (remember|know) that my {k} is {v}.", "as for my {k}, it is {v}.",
    "the {k} I have is {v}, so my {k} is {v}.", "my {k}: {v}.",
    MORE, "(just so you know|so that you know|note this|so you know), my {k} is {v}.", "(note|do note|please note|do remember|do not forget|don't ever forget|never forget) that my {k} is {v}.", "{v}, that is my {k}.", "my {k} (happens to be|has always been|would be) {v}.",
)  # fmt: skip
_ASK_ATTRIBUTE = (
    *_remembered("my {k}"),
    "what did I say my {k} (is|was)?",
    "(please tell me|could you tell me|I need) my {k} [again].",
)
_TELL_PET = (
    "I have {an} called {v}.", "I have {an} named {v}.", "my {n} is called {v}.", "my {n} is named {v}.", "my {n}'s name is {v}.",
    "the name of my {n} is {v}.", "(I own|I've got|I got) {an} called {v}.", "{v} is the name of my {n}.", "I call my {n} {v}.",
    UNSCORED, "(at home|there) I have {an} (who is called|whose name is) {v}.", "I (do|also|still|now) (own|keep) {an} (called|named|by the name of) {v}.", "(we have|we've got|we own) {an} (called|named) {v}.", "there is {an} of mine (called|named) {v}.", "{v} is [the name of] {an} I have.", "my {n} (goes by|answers to|has) the name {v}.",
)  # fmt: skip
_ASK_PET = (
    "(what is|what's|what was) (the name of my {n}|my {n} called|my {n}'s name|my {n} named) [again]?", "how is my {n} called?",
    "(do you remember|tell me|can you tell me|do you know|remind me) (what my {n} is called|the name of my {n}|my {n}'s name) [please]?",
    "what do I call my {n}?", "what did I call my {n}?", "(say|repeat) the name of my {n}.", "who is my {n}?",
    UNSCORED, "(which|what) name (does my {n} have|did I give my {n}|has my {n}) [again]?", "(give|tell) me my {n}'s name [again].", "my {n} is called (what|how)?", "(and|now) the name of my {n} (is|was)?", "what name does my {n} (go by|answer to)?",
)  # fmt: skip
_TELL_OTHER = (
    "{p}'s {k} is {v}.", "the {k} of {p} is {v}.", "(remember|note|keep in mind) that {p}'s {k} is {v}.", "for {p}, the {k} is {v}.",
    MORE, "(please remember|please note|keep in mind|don't forget|do not forget|you should know) that (the {k} of {p}|{p}'s {k}) is {v}.", "(just so you know|for later|by the way), (the {k} of {p}|{p}'s {k}) is {v}.", "{v} is (the {k} of {p}|{p}'s {k}).", "{p} has {v} as {k}.",
    UNSCORED, "keep in mind [this]: {p}'s {k} is {v}.", "(keep|have) {p}'s {k} in mind: it is {v}.", "(know|learn|write down|be aware) that {p}'s {k} is {v}.", "{p}'s {k}: {v}.", "(listen|attention|look|fyi), {p}'s {k} is {v}.",
)  # fmt: skip
_ASK_OTHER = (
    "(what is|what's|what was) {p}'s {k} [again]?", "(what is|what's) the {k} of {p}?", "(do you remember|tell me|do you know|remind me of|give me) {p}'s {k} [please]?",
    "and {p}'s {k}?", "I need {p}'s {k}.", "which {k} does {p} have?",
)  # fmt: skip
_TELL_THE = (
    "the {k} is {v}.", "(remember|please remember|note|keep in mind) that the {k} is {v}.", "(remember|note): the {k} is {v}.",
    "(just so you know|for later|by the way), the {k} is {v}.", "{v} is the {k}.",
    MORE, "(just so you know|for later|by the way|so you know|for the record|you should know), the {k} is {v}.", "(don't forget|do not forget|never forget) that the {k} is {v}.", "as for the {k}, it is {v}.", "the {k} (will be|would be|is going to be) {v}.",
)  # fmt: skip
_ASK_THE = (
    "(what is|what's|what was|when is|which is|where is) the {k} [again]?", "(do you remember|tell me|do you know|remind me of|give me|repeat) the {k} [please]?",
    "and the {k}?", "what did I (say|tell you) (about the {k}|the {k} is|the {k} was)?", "I need the {k} [again].",
)  # fmt: skip
_THE = ["deadline", "meeting", "password", "code", "budget", "answer", "secret word", "door code", "wifi password", "address", "price", "date", "plan", "topic", "goal", "start time", "room", "title", "winner", "total", "next stop", "magic word", "order number", "theme", "release date", "location", "score", "result", "token", "file name", "version", "port", "server", "colour", "recipe", "name of the project"]  # fmt: skip

_QUESTIONS = {fact.key: fact.questions for fact in FACTS}
_CORRECT = (
    "(actually|no|sorry|wait|correction|no wait|oh wait|I mean), ",
    "(I was wrong|I made a mistake|that was wrong|that's not right): ",
    MORE,
    "(actually|no|sorry|wait|correction|no wait|oh wait|oh no|oh sorry|oh|I mean), ",
)
_UNTOLD = "You have not told me {} yet."
_MY = {"name": "your name", "city": "where you live", "origin": "where you come from", "job": "what you do for a living",
       "age": "your age", "employer": "who you work for", "likes": "what you like", "dislikes": "what you do not like",
       "allergy": "what you are allergic to", "goal": "what you want to do", "language": "which language you speak"}  # fmt: skip


def memory(scene: Scene) -> None:
    """Tell facts, then ask for one of them; the facts may come in one message or in several."""
    kind = scene.rng.randrange(21) // 2
    if kind == 10:
        known(scene)
    elif kind < 4:
        _about_user(scene)
    elif kind < 6:
        _keyed(
            scene, _TELL_ATTRIBUTE, _ASK_ATTRIBUTE, scene.rng.choice(_ATTRIBUTES), "your {k} is {v}"
        )
    elif kind == 6:
        noun = (
            scene.words.choice("ANIMALS") if scene.rng.random() < 0.6 else scene.rng.choice(_OWNED)
        )
        _keyed(scene, _TELL_PET, _ASK_PET, noun, "your {n} is called {v}")
    elif kind == 7:
        _keyed(scene, _TELL_OTHER, _ASK_OTHER, scene.rng.choice(_ATTRIBUTES), "{p}'s {k} is {v}")
    elif kind == 8:
        _keyed(scene, _TELL_THE, _ASK_THE, scene.rng.choice(_THE), "the {k} is {v}")
    else:
        untold(scene)


def untold(scene: Scene) -> None:
    """Ask for something that was never told."""
    rng = scene.rng
    if rng.random() < 0.5:
        facts = [fact for fact in FACTS if fact.key not in scene.recalls]
        if facts:
            fact = rng.choice(facts)
            scene.ask(fact.questions)
            scene.about(None, "Personal facts")
            scene.answer(_UNTOLD.format(_MY[fact.key]))
            return
    key = rng.choice([k for k in _ATTRIBUTES if f"your {k}" not in scene.recalls])
    scene.ask(_ASK_ATTRIBUTE, k=key)
    scene.about(f"your {key}", f"Your {key}")
    scene.answer(_UNTOLD.format(f"your {key}"))


_KNOWN = (
    "what do you (know|remember) about me [so far]?", "what (have I|did I) (told|tell) you about (me|myself) [so far]?", "(tell me|say|list|repeat) what you know about me [please].",
    "(do you know|do you remember|have you learnt) anything about me?", "(sum up|summarise|recap) what I told you about (me|myself).", "what (facts|things) do you know about me?",
    MORE, "(what|which) (facts|things) (do you know|have you learnt|did I tell you) about me?",
)  # fmt: skip
_NOTHING_KNOWN = "You have not told me anything about yourself yet."


def known(scene: Scene) -> None:
    """All facts that the user has told about themselves, in the order of telling."""
    rng = scene.rng
    if not scene.noted and rng.random() < 0.7:
        for fact in rng.sample(FACTS, rng.randint(1, 2)):
            value = fact.value(scene.words)
            noted = fill(fact.noted, v=value)
            scene.ask(fact.tell, v=value)
            scene.about(None, "Personal facts")
            _note(scene, fact.key, noted, value if fact.key == "name" else None)
            _acknowledge(scene, fact.key, noted, value)
    scene.ask(_KNOWN)
    scene.about(None, "Personal facts")
    facts = list(scene.noted.values())
    scene.answer(f"{capitalised(joined(facts))}." if facts else _NOTHING_KNOWN)


def told_again(scene: Scene) -> None:
    """Ask once more for a fact of this conversation."""
    if not scene.recalls:
        memory(scene)
        return
    recall = scene.rng.choice(list(scene.recalls.values()))
    scene.ask(recall.questions, wrap=True, **recall.values)
    scene.about(None, "Personal facts")
    scene.answer(recall.answer)


def _note(scene: Scene, key: str, noted: str, name: str | None = None) -> None:
    scene.recall(key, _QUESTIONS[key], f"{capitalised(noted)}.")
    scene.noted.pop(key, None)
    scene.noted[key] = noted
    if name:
        scene.user_name = name


def _acknowledge(scene: Scene, key: str, noted: str, value: str) -> None:
    scene.answer(f"Nice to meet you, {value}." if key == "name" else f"Noted: {noted}.")


def _about_user(scene: Scene) -> None:
    rng, words = scene.rng, scene.words
    count = rng.choices((1, 2, 3), (5, 3, 1))[0]
    facts = rng.sample(FACTS, count)
    if rng.random() < 0.4 and FACTS[0] not in facts:
        facts[0] = FACTS[0]
    values = [fact.value(words) for fact in facts]
    texts, noted = [], []
    for fact, value in zip(facts, values, strict=True):
        texts.append(scene.phrase(fact.tell, wrap=count == 1, v=value))
        noted.append(fill(fact.noted, v=value))
        _note(scene, fact.key, noted[-1], value if fact.key == "name" else None)
    told = (
        " ".join(t if t.endswith((".", "!", "?")) else f"{t}." for t in texts)
        if count > 1
        else texts[0]
    )
    asked = rng.randrange(count)
    _tell_and_ask(scene, told, facts, noted, values, asked)


def _tell_and_ask(
    scene: Scene, told: str, facts: list[Fact], noted: list[str], values: list[str], asked: int
) -> None:
    rng = scene.rng
    fact = facts[asked]
    if rng.random() < 0.4:  # "My name is Ada. What is my name?" in one message
        question = scene.phrase(fact.questions, wrap=False)
        scene.user(f"{told if told.endswith('.') else told + '.'} {question}")
        scene.about(None, "Personal facts")
        scene.answer(f"{capitalised(noted[asked])}.")
        return
    scene.user(told)
    scene.about(None, "Personal facts")
    if len(facts) == 1:
        _acknowledge(scene, fact.key, noted[0], values[0])
    else:
        scene.answer(f"Noted: {', '.join(noted[:-1])} and {noted[-1]}.")
    if rng.random() < 0.2:
        _correct(scene, fact)
    if rng.random() < 0.8:
        scene.ask(fact.questions)
        scene.answer(scene.recalls[fact.key].answer)


def _correct(scene: Scene, fact: Fact) -> None:
    value = fact.value(scene.words)
    text = scene.phrase(fact.tell, wrap=False, v=value)
    head = scene.phrase(_CORRECT, wrap=False)
    scene.user(f"{head}{'' if head.endswith((',', ':')) else ','} {text}")
    noted = fill(fact.noted, v=value)
    _note(scene, fact.key, noted, value if fact.key == "name" else None)
    _acknowledge(scene, fact.key, noted, value)


def _keyed(scene: Scene, tell: tuple[str, ...], ask: tuple[str, ...], key: str, noted: str) -> None:
    """One to four facts of the same kind ("my x is y"), then one of them asked."""
    rng, words = scene.rng, scene.words
    count = rng.choices((1, 2, 3, 4), (4, 3, 2, 1))[0]
    keys = [key]
    pool = _THE if key in _THE and ask is _ASK_THE else _ATTRIBUTES
    if ask is _ASK_PET:
        pool = list(_OWNED)
    keys += [k for k in rng.sample(pool, count) if k != key][: count - 1]
    rng.shuffle(keys)
    rows = [_row(words, k, is_pet=ask is _ASK_PET) for k in keys]
    texts = []
    for row in rows:
        texts.append(scene.phrase(tell, wrap=len(keys) == 1, **row))
    facts = [fill(noted, **row) for row in rows]
    for row, fact in zip(rows, facts, strict=True):
        scene.recall(fact.split(" is ")[0], ask, f"{capitalised(fact)}.", **row)
    is_apart = len(keys) > 1 and rng.random() < 0.4
    if is_apart:
        for text, fact in zip(texts, facts, strict=True):
            scene.user(text)
            scene.about(None, "Personal facts")
            scene.answer(f"Noted: {fact}.")
    else:
        told = (
            " ".join(t if t.endswith(".") else f"{t}." for t in texts)
            if len(texts) > 1
            else texts[0]
        )
        if rng.random() < 0.35:
            place = rng.randrange(len(rows))
            question = scene.phrase(ask, wrap=False, **rows[place])
            scene.user(f"{told if told.endswith('.') else told + '.'} {question}")
            scene.about(None, "Personal facts")
            scene.answer(f"{capitalised(facts[place])}.")
            return
        scene.user(told)
        scene.about(None, "Personal facts")
        scene.answer(
            f"Noted: {', '.join(facts[:-1])} and {facts[-1]}."
            if len(facts) > 1
            else f"Noted: {facts[0]}."
        )
    place = rng.randrange(len(rows))
    scene.ask(ask, wrap=True, **rows[place])
    scene.answer(f"{capitalised(facts[place])}.")


def _row(words: Words, key: str, *, is_pet: bool = False) -> dict[str, str]:
    rng = words.rng
    if "colour" in key:
        value = words.choice("COLOURS")
    elif "food" in key:
        value = words.choice("FOODS")
    elif "animal" in key:
        value = words.choice("ANIMALS")
    elif key in ("birthday", "deadline", "date", "release date", "meeting", "appointment"):
        value = (
            rng.choice((words.date(), f"on {words.date()}", f"at {words.clock_time()}"))
            if key in ("meeting", "appointment")
            else words.date()
        )
    elif "number" in key or key in (
        "code",
        "score",
        "total",
        "port",
        "shoe size",
        "budget",
        "price",
    ):
        value = rng.choice((str(words.number(1, 99999)), words.code(), words.amount()))
    elif key in _OWNED or (" " not in key and rng.random() < 0.3):
        value = words.first_name()
    else:
        value = words.phrase(1, 2)
    if is_pet or key in _OWNED or key in words_of("ANIMALS", words.split):
        value = words.first_name()
    return {"k": key, "v": value, "n": key, "an": a(key), "p": words.first_name()}
