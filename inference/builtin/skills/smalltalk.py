"""Small talk: greetings, thanks, moods, jokes."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.scene import Scene
from inference.builtin.skills.smalltalk_intents import INTENTS, Intent

_GREETINGS = (
    "(hello|hi|hey|hiya|howdy|hallo|helo|hullo|yo|heya|heyy|hii|hellooo|greetings) [there|Vitrine|again|bot|you|friend|my friend|everyone|assistant|mate|all].",
    "good (morning|afternoon|evening|day) [Vitrine|to you|there|everyone|my friend|sir].",
    "(morning|evening|afternoon|gday|g'day|salutations|hi hello|hello hello|hey hey|well hello) [there|Vitrine|again].",
    "(hello|hi|hey), (it's me|I'm back|I am back|I am here|nice to see you|I am new here|new here|this is my first time here|me again).",
    "(hello|hi|hey) (world|computer|machine|robot|ai|chat|chatbot|dear|stranger|buddy|pal|dude|man).",
)  # fmt: skip

_GREETINGS_BY_NAME = ("(hello|hi|hey|good morning|good evening|greetings) [there] {name}.",)


def greeting(scene: Scene) -> None:
    """A greeting; a persona with a name of its own introduces itself, a known user is named."""
    persona = scene.persona
    if persona.name and scene.rng.random() < 0.15:
        scene.ask(_GREETINGS_BY_NAME, wrap=False, name=persona.name)
    else:
        scene.ask(_GREETINGS, wrap=False)
    scene.about(None, "Greeting")
    scene.answer(greeting_text(scene))


def greeting_text(scene: Scene) -> str:
    """How the assistant of this scene says hello."""
    head = f"Hello, {scene.user_name}." if scene.user_name else "Hello."
    persona = scene.persona
    middle = f" I am {persona.name}." if persona.name not in (None, "Vitrine") else ""
    return f"{head}{middle} How can I help you?"


def smalltalk(scene: Scene) -> None:
    """One exchange of small talk."""
    if scene.rng.random() < 0.18:
        greeting(scene)
        return
    say(scene, scene.rng.choice(INTENTS))


def say(scene: Scene, intent: Intent, title: str = "Small talk") -> None:
    """One exchange with a fixed answer."""
    scene.ask(intent.patterns)
    scene.about(None, title)
    scene.answer(intent.answer)
