"""One-sentence summaries: of a text, its leading sentence; of a conversation, its topics."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin import facts
from inference.builtin.scene import Scene, joined

_TEXT = (
    "(summarise|summarize|sum up) (this|the following|this text|the following text) in one sentence: {t}", "(summarise|summarize|sum up) [this|in one sentence]:\n{t}",
    "(what is|what's) the (main point|gist|essence) of (this|this text|the following)? {t}", "(give|write) [me] a (one-sentence|short|brief) summary of (this|this text|the following):\n{t}",
    "{t}\n\n(summarise|summarize|sum up) (this|the text|it|the text above) [in one sentence] [please].", "(tl;dr|tldr|in short|in one sentence): {t}", "{t}\n\n(tl;dr|tldr|in one sentence please|give me a summary|a short summary please)",
    "(shorten|condense|reduce) (this|this text|the following) to one sentence: {t}", "(one sentence|short) summary: {t}", "(can|could) you (summarise|summarize|sum up) (this|this text) [in one sentence]? {t}",
)  # fmt: skip
_CHAT = (
    "(summarise|summarize|sum up) (this|our|the) (conversation|chat|dialogue) [in one sentence] [please].", "(give|write) [me] a (one-sentence|short|brief) summary of (this|our|the) (conversation|chat).",
    "what (did we talk|have we talked|did we chat) about [so far|today]?", "(what was|what is) (this|our) (conversation|chat) about [so far]?", "in one sentence, what did we talk about?",
    "(recap|short recap of) (this|our) (conversation|chat) [please].",
)  # fmt: skip


def summary(scene: Scene) -> None:
    """Summarise a text in the message, or the conversation so far."""
    if len(scene.topics) and scene.rng.random() < 0.4:
        scene.ask(_CHAT)
        scene.answer(f"The user asked about {joined(scene.topics)}.")
        return
    text, lead = passage(scene)
    scene.ask(_TEXT, wrap=False, t=text)
    scene.about(None, "Summary of a text")
    scene.answer(lead)


def passage(scene: Scene) -> tuple[str, str]:
    """A text of two to six sentences and its first sentence."""
    words, rng = scene.words, scene.rng
    kind = rng.randrange(len(facts.KINDS))
    name = facts.subject(words, kind)
    sentences = [s.sentence for s in facts.statements(words, kind, name, rng.randint(1, 4))]
    if rng.random() < 0.3:
        sentences[0] = facts.filler(words)
    for _ in range(rng.randint(1, 2)):
        sentences.append(facts.filler(words))
    return " ".join(sentences), sentences[0]
