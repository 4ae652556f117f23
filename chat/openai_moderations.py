"""/v1/moderations: texts in, what they hold by category out. Source: OpenAI's API description 2.3.0."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StrictStr, Tag, field_validator

from chat.api_errors import ApiError
from chat.ids import uuid7
from chat.moderating import flagged_at, is_on, scores_of
from chat.openai_schemas import A_LIST, A_TEXT, Strict
from chat.rights import Rights
from inference import Caller
from moderation.categories import Scores, worst

MAX_INPUTS = 256
MAX_CHARS = 50_000  # of all inputs together: some hundred readings for the engine
MODEL = "vitrine-moderation"
_THEIRS = ("omni-moderation", "text-moderation")  # what OpenAI's clients name, in any version


class ModeratedText(Strict):
    type: Literal["text"]
    text: StrictStr


class ModeratedImage(Strict):
    type: Literal["image_url"]
    image_url: dict[str, Any]


Part = Annotated[ModeratedText | ModeratedImage, Field(discriminator="type")]
Many = Field(min_length=1, max_length=MAX_INPUTS)


def _shape(value: Any) -> str:
    if not isinstance(value, list):
        return "a text"
    return "a list of parts" if value and not isinstance(value[0], str) else "a list"


class ModerationIn(Strict):
    """One text, several, or parts of one."""

    input: Annotated[
        Annotated[StrictStr, A_TEXT]
        | Annotated[list[StrictStr], Many, A_LIST]
        | Annotated[list[Part], Many, Tag("a list of parts")],
        Discriminator(_shape),
    ]
    model: str | None = None

    @field_validator("input")
    @classmethod
    def _is_not_too_long(cls, value: Any) -> Any:
        given = [value] if isinstance(value, str) else value
        texts = [one if isinstance(one, str) else getattr(one, "text", "") for one in given]
        if sum(map(len, texts)) > MAX_CHARS:
            raise ValueError(f"all texts together have more than {MAX_CHARS:,} characters")
        return value

    @property
    def texts(self) -> list[str]:
        """What is judged, each by itself."""
        if isinstance(self.input, str):
            return [self.input]
        return [one if isinstance(one, str) else one.text for one in self._given]

    @property
    def _given(self) -> list[str | ModeratedText]:
        return [one for one in self.input if not isinstance(one, ModeratedImage)]

    @property
    def is_one(self) -> bool:
        """Parts of one input, whose worst is the whole's."""
        return not isinstance(self.input, str) and not isinstance(self.input[0], str)


async def moderate(rights: Rights, data: ModerationIn) -> dict[str, Any]:
    """Raises EngineError or ApiError. Costs no tokens of anybody's, but requests."""
    _check(data)
    user = rights.user
    caller = Caller(str(user.pk), user.tier.weight, rights.priority)
    scored = await scores_of(data.texts, caller)
    if data.is_one:
        scored = [worst(scored)]
    return {
        "id": f"modr-{uuid7().hex}",
        "model": MODEL,
        "results": [_result(scores) for scores in scored],
    }


def _check(data: ModerationIn) -> None:
    model = data.model or MODEL
    if not is_on():
        raise ApiError(404, "model_not_found", "Moderation is switched off here.", "model")
    if model != MODEL and not model.startswith(_THEIRS):
        raise ApiError(404, "model_not_found", f"There is no moderation model '{model}'.", "model")
    if any(isinstance(one, ModeratedImage) for one in data.input):
        raise ApiError(400, "unsupported_value", "Pictures cannot be judged here.", "input")


def _result(scores: Scores) -> dict[str, Any]:
    categories = {name: score >= flagged_at()[name] for name, score in scores.items()}
    return {
        "flagged": any(categories.values()),
        "categories": categories,
        "category_scores": {name: round(score, 6) for name, score in scores.items()},
        "category_applied_input_types": {name: ["text"] for name in scores},
    }
