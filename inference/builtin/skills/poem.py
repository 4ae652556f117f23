"""Short poems from a few fixed forms with the topic set in."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.scene import Scene

_HAIKU = ("(write|make|compose|give|create) [me] a haiku (about|on|for) {t} [please].", "(a haiku|haiku) (about|on) {t} [please].", "(can|could) you (write|make|compose) a haiku (about|on) {t} [for me]?",
          "(I want|I'd like|I need) a haiku about {t}.", "haiku: {t}")  # fmt: skip
_POEM = (
    "(write|make|compose|give|create) [me] a [short|little|nice|small] poem (about|on|for) {t} [please].", "(a poem|poem|a short poem|a rhyme|some verses) (about|on) {t} [please].",
    "(can|could|would) you (write|make|compose|recite) [me] a [short|little] (poem|rhyme|verse) (about|on) {t} [for me]?", "(I want|I'd like|I need) a [short] poem about {t}.", "(write|give me) (some|a few|four) (verses|lines|lines of verse) (about|on) {t}.",
    "(tell|read) me a poem about {t}.", "(compose|write) (verses|a verse|a rhyme) about {t} [please].",
)  # fmt: skip
_FREE = ("(write|make|compose|tell|give) me a [short|nice] (poem|haiku|verse|rhyme) [please].", "(a|one) poem please.", "(can|could) you write (a poem|poems|poetry) [for me]?", "(poem|poetry) please", "(do you know|know) a poem?")  # fmt: skip


def haiku_text(topic: str) -> str:
    """Three lines about a topic."""
    return f"A thought of {topic},\nquiet as the morning light,\nthen gone with the wind."


def poem_text(topic: str) -> str:
    """Four lines about a topic."""
    return f"I sat and thought of {topic},\nthe evening light was low,\nI wrote it down in four short lines,\nand then I let it go."


def poem(scene: Scene) -> None:
    """A poem or haiku about a topic, or one without."""
    rng = scene.rng
    if rng.random() < 0.1:
        scene.ask(_FREE)
        scene.about(None, "A poem")
        asked = scene.messages[-1].content.lower()
        scene.answer(haiku_text("you") if "haiku" in asked else poem_text("you"))
        return
    topic = scene.words.topic()
    is_haiku = rng.random() < 0.45
    scene.ask(_HAIKU if is_haiku else _POEM, t=topic)
    scene.about(topic, f"{'Haiku' if is_haiku else 'Poem'} about {topic}")
    scene.answer(haiku_text(topic) if is_haiku else poem_text(topic))
