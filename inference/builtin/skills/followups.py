"""Follow-up questions as a JSON list of three strings about the latest topic."""
# ruff: noqa: E501 - patterns read best whole

import json

from inference.builtin.scene import Scene

_ASK = (
    "(suggest|give|write|propose|list|generate) (three|3) [short] follow-up questions [as a JSON list|as JSON|as a JSON list of strings|in a JSON array].",
    "(what|which) (three|3) questions (could|might|should) (I|the user) ask next? [Answer|Reply] as a JSON list.",
    "(suggest|write|give me) (three|3) (questions|follow-ups) (that the user|I|the user) (could|might) ask next, as a JSON list [of strings].",
    "(write|generate) follow-up questions (as|in) JSON [please].", "(three|3) follow-up questions [as a JSON list|as JSON|please].",
    "(suggest|give|list) (the next|some next|possible next) questions as a JSON (list|array) [of three strings].",
    "(reply|answer) with a JSON (list|array) of (three|3) follow-up questions.",
)  # fmt: skip
_GENERAL = (
    "What else can you do?",
    "Can you tell me a joke?",
    "Can you write a poem about the sea?",
)


def questions(topic: str | None) -> list[str]:
    """Three questions about a topic, or three general ones."""
    if topic is None:
        return list(_GENERAL)
    return [
        f"Can you tell me more about {topic}?",
        f"Why does {topic} matter?",
        f"Can you give an example for {topic}?",
    ]


def followups(scene: Scene) -> None:
    """Ask for follow-up questions; they are about the latest topic."""
    scene.ask(_ASK, wrap=False)
    scene.answer(
        json.dumps(questions(scene.topics[-1] if scene.topics else None), ensure_ascii=False)
    )
