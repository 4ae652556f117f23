"""Titles of conversations: the topic of the first user message, two to six words."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.phrasing import UNSCORED
from inference.builtin.scene import Scene, capitalised

_ASK = (
    "(write|give|create|make|suggest|generate) a (short|brief|concise|good) title for (this|the|our) (conversation|chat|dialogue|discussion) [please].",
    "(what is|what would be|what's) a (good|short|fitting) title for (this|our|the) (conversation|chat)?",
    "(title|name) (this|our|the) (conversation|chat) [in a few words|please].", "(please|now) (name|title) (this|our) (conversation|chat).",
    "(sum up|describe) (this|our|the) (conversation|chat) in (a title|two to six words|a short title|a headline).",
    "(write|give) (only|just) (the|a) title (of|for) (this|the) (conversation|chat), (no quotes|nothing else|in two to six words).",
    "(write|create) a title of two to six words for (this|the) (conversation|chat).", "(short|a short) title [for this (conversation|chat)] please.",
    "what (should|could) (this|our) (conversation|chat) be called?", "(give|find) (this|our) (conversation|chat) a (name|title|short title).",
    UNSCORED, "(what|how) (should|could|might|would|can) (I|we|you) (call|name|title) (this|our|the) (conversation|chat|discussion|dialogue)?", "(find|give|think of|suggest) (a name|a headline|a good title|a fitting name) for (this|our|the) (conversation|chat|discussion).", "what (might|would|can) (this|our|the) (conversation|chat|discussion) be (called|named|titled)?", "(call|head|label) (this|our|the) (conversation|chat|discussion) [please|in a few words].", "(this|our|the) (conversation|chat) needs a (title|name|headline) [please].",
)  # fmt: skip
_SYSTEM = (
    "(Write|Give|Create|Generate) a (short|concise|brief) title for the (conversation|chat|message) [of the user] [in two to six words].",
    "You (write|create) (short|brief|concise) titles for (conversations|chats). (Answer|Reply) with the title only.",
    "(Answer|Reply) with a (short|brief) title for (this|the) (conversation|chat|message), (without quotes|no quotes|nothing else).",
)  # fmt: skip
_LEADS = ("User: ", "user: ", "USER: ", "Human: ")


def title(scene: Scene) -> None:
    """Ask for the title at the end of a conversation that already has a topic."""
    assert scene.title is not None
    wanted = short(scene.title)
    kind = scene.rng.randrange(10)
    if kind < 6:
        scene.ask(_ASK, wrap=False)
        scene.answer(wanted, also=(capitalised(wanted),))
    else:
        _apart(scene, wanted, is_system=kind < 8)


def _apart(scene: Scene, wanted: str, *, is_system: bool) -> None:
    """The whole conversation, or its first message, quoted in one message."""
    rng = scene.rng
    said = [m for m in scene.messages if m.role in ("user", "assistant") and m.call is None]
    if rng.random() < 0.3:
        quoted = said[0].content
    else:
        lead = rng.choice(_LEADS)
        other = {
            "User: ": "Assistant: ",
            "user: ": "assistant: ",
            "USER: ": "ASSISTANT: ",
            "Human: ": "Assistant: ",
        }[lead]
        quoted = "\n".join((lead if m.role == "user" else other) + m.content for m in said[:4])
    scene.messages.clear()
    scene.tools.clear()
    if is_system:
        scene.system = scene.phrase(_SYSTEM, wrap=False)
        scene.user(quoted)
    else:
        asked = scene.phrase(_ASK, wrap=False)
        scene.user(f"{asked}\n\n{quoted}" if rng.random() < 0.7 else f"{quoted}\n\n{asked}")
    scene.answer(wanted, also=(capitalised(wanted),))


def short(text: str) -> str:
    """At most six words, without marks at the end."""
    return " ".join(text.split()[:6]).rstrip("?.,:;!")
