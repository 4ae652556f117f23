"""Going on with an answer that was cut: lists, copies, counts and poems."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.scene import Scene
from inference.builtin.skills.echo import text_to_copy
from inference.builtin.skills.lists import given, items, listed
from inference.builtin.skills.poem import poem_text

_GO_ON = (
    "(continue|go on|carry on|keep going|proceed|more|next|resume) [please|now].", "(please|now) (continue|go on|carry on|keep going|proceed).", "(can|could) you (continue|go on|carry on|finish|finish that) [please]?",
    "(continue|go on|carry on) (where you stopped|from there|from where you left off|with your answer|the answer).", "(your answer|it|that|the answer|your text) (was cut off|was cut|got cut off|stopped|is incomplete) [please continue|go on].",
    "(finish|complete) (your answer|the answer|that|it|your sentence|the list) [please].", "(and then|and|what comes next|what's next|then)?", "(write|give me|say) the rest [please].",
)  # fmt: skip
_LIST = ("(make|write) a (list|bullet list) of {x}.", "list {x} [please].", "(a list|a bullet list) (of|with) {x} [please].", "(give|show) me a list (of|with) {x}.")  # fmt: skip
_SAY = (
    "(say|repeat|write|copy)[ exactly| after me| this]: {x}",
    "(repeat|copy) the following: {x}",
    "(please repeat|can you repeat): {x}",
)
_COUNT = (
    "count from {a} to {b} [please].",
    "(list|write) the numbers from {a} to {b}.",
    "(can|could) you count from {a} to {b}?",
)
_POEM = (
    "(write|make) [me] a poem about {t} [please].",
    "(a|one) poem about {t} please.",
    "(can|could) you write a poem about {t}?",
)


def continuation(scene: Scene) -> None:
    """An answer cut at a random place, "go on", and the rest."""
    rng, words = scene.rng, scene.words
    kind = rng.randrange(6)
    if kind < 2:
        things = items(words, 4, 8)
        scene.ask(_LIST, wrap=False, x=given(words, things))
        parts, glue = listed(things, is_numbered=False).split("\n"), "\n"
    elif kind < 4:
        text = text_to_copy(words)
        while len(text.split()) < 4:
            text = f"{text} {text_to_copy(words)}"
        scene.ask(_SAY, wrap=False, x=text)
        parts, glue = text.split(), " "
    elif kind == 4:
        low = rng.randint(0, 40)
        high = low + rng.randint(6, 18)
        scene.ask(_COUNT, wrap=False, a=low, b=high)
        parts, glue = [f"{n}," for n in range(low, high)] + [str(high)], " "
    else:
        topic = words.topic()
        scene.ask(_POEM, wrap=False, t=topic)
        parts, glue = poem_text(topic).split("\n"), "\n"
    place = rng.randint(1, len(parts) - 1)
    scene.about(None, "A long answer")
    scene.cut_answer(glue.join(parts[:place]))
    scene.ask(_GO_ON, wrap=False)
    scene.answer(glue.join(parts[place:]))
