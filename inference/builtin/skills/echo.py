"""Saying things after the user: copying in its plainest form, and the training ground for it."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.scene import Scene
from inference.builtin.words import Words

_ONCE = (
    "(say|repeat|echo|write|type|print) {x} [please].", "(say|repeat|echo|write|type|answer|reply)[ exactly| only| just]: {x}", "repeat after me: {x}", "(repeat|say) (this|the following|these words)[ exactly| word for word]: {x}",
    "(can|could|would) you (say|repeat|write|echo) {x} [for me|please]?", "(just|only|please) (say|repeat|write|answer|reply with) {x}.", "(I want you to|you must|now) (say|repeat|write|echo) {x}.", "(answer|reply|respond) with {x} [and nothing else].",
    "(copy|copy this|copy the following|copy exactly)[ please]: {x}", "{x}\n(repeat that|say that again|copy this|repeat this|echo this) [please]",
)  # fmt: skip
_TIMES = ("(say|repeat|write|echo|type) {x} {n} times [please].", "(say|repeat|write|echo) {n} times: {x}", "(can|could) you (say|repeat|write) {x} {n} times?", "{n} times {x} [please].")  # fmt: skip
_LAST = ("what did I (just say|say|just write|just ask|write|type just now)?", "(repeat|say|quote) my last (message|question|words) [please].", "what was my (last|previous) (message|question)?", "what did I (ask|say|write) (before|before that|just now|a moment ago)?")  # fmt: skip
_FIRST = ("what (was|is) (my|the) first (message|question) [in this chat|here]?", "(repeat|quote) my first (message|question) [please].", "what did I (say|ask|write) first?", "how did (I|we) (start|begin) (this chat|this conversation)?")  # fmt: skip
_AGAIN = ("(repeat|say) (that|it|your answer|your last answer|your last message) [again|once more] [please].", "(what was that|come again|sorry, what|pardon|once more|again|one more time|say again) [please]?", "(can|could) you (repeat|say) (that|it|your answer) [again|please]?", "what did you [just] say?")  # fmt: skip
_NTH = ("(what is|what's|which is|give me|tell me) the {o} (word|item|entry|one) (in|of) {x}?", "(say|name|pick|repeat) the {o} (word|item|one) of {x}.")  # fmt: skip
_COUNT = ("count [up] from {a} to {b} [please].", "(can|could) you count from {a} to {b}?", "(list|say|write|print) the numbers from {a} to {b}.", "numbers (from|between) {a} (to|and) {b} [please].")  # fmt: skip


def text_to_copy(words: Words) -> str:
    """A run of words, longer ones included."""
    rng = words.rng
    kind = rng.randrange(8)
    if kind == 0:
        return words.phrase(6, 24)
    if kind == 1:
        return " ".join(words.coined() for _ in range(rng.randint(2, 9)))
    if kind == 2:
        return "".join(str(rng.randrange(10)) for _ in range(rng.randint(3, 16)))
    if kind == 3:
        return ", ".join(words.token() for _ in range(rng.randint(2, 9)))
    if kind == 4:
        return words.coined().upper() if rng.random() < 0.4 else words.code()
    if kind == 5:
        return f"the {words.choice('ADJECTIVES')} {words.noun()} {words.choice('VERBS').split(':')[1]} the {words.noun()}"
    return words.phrase(1, 4)


def echo(scene: Scene) -> None:
    """Something to say after the user, once or several times, or an earlier message."""
    rng, words = scene.rng, scene.words
    kind = rng.randrange(20)
    said = [m for m in scene.messages if m.role in ("user", "assistant")]
    if kind < 11 or (kind >= 17 and len(said) < 2):
        text = text_to_copy(words)
        shown = rng.choice((text, text, f'"{text}"'))
        scene.ask(_ONCE, wrap=False, x=shown)
        answer = text
    elif kind < 13:
        text, count = words.phrase(1, 3), rng.randint(2, 5)
        spoken = rng.choice((str(count), ("two", "three", "four", "five")[count - 2]))
        scene.ask(_TIMES, wrap=False, x=text, n=spoken)
        answer = " ".join([text] * count)
    elif kind < 15:
        things = [words.token() for _ in range(rng.randint(3, 6))]
        place = rng.randrange(min(len(things), 5))
        scene.ask(
            _NTH,
            wrap=False,
            x=", ".join(things),
            o=("first", "second", "third", "fourth", "fifth")[place],
        )
        answer = things[place]
    elif kind < 17:
        low = rng.randint(0, 50)
        high = low + rng.randint(2, 16)
        scene.ask(_COUNT, a=low, b=high)
        answer = ", ".join(str(n) for n in range(low, high + 1))
    else:
        return _earlier(scene, kind)
    scene.about(None, "Repeating words")
    scene.answer(answer)
    return None


def _earlier(scene: Scene, kind: int) -> None:
    texts = [m for m in scene.messages if m.role in ("user", "assistant") and m.call is None]
    users = [m.content for m in texts if m.role == "user"]
    if kind == 17 and len(users[-1]) < 300:
        scene.ask(_LAST, wrap=False)
        scene.answer(f"You said: {users[-1]}")
    elif kind == 18 and len(users[0]) < 300:
        scene.ask(_FIRST, wrap=False)
        scene.answer(f"You said: {users[0]}")
    elif texts[-1].role == "assistant":
        scene.ask(_AGAIN, wrap=False)
        scene.answer(texts[-1].content)
