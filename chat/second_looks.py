"""What a second look at an answer needs: its turns, and the very model that wrote it.

A second look (replay.py, likelihoods.py) asks the engine what it was asked before, in the background
class, and leaves nothing behind. It is refused where it would prove nothing: another server's model, a
model that is gone or whose files have changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.utils.translation import gettext

from chat import access, history, turns
from chat.engine import engine
from chat.errors import ChatError
from chat.models import Generation, MessageStatus
from chat.off_loop import off_loop
from chat.rights import Rights
from chat.seeing import images_among
from inference import ModelState, PromptImage, SamplingParams, with_data
from retrieval.excerpts import Excerpt, texts_of

_looking: set[Any] = set()


class CannotLook(ChatError):
    """Why an answer cannot be looked at again."""

    code = "no_second_look"
    status = 409


@dataclass(frozen=True, slots=True)
class Turn:
    """What the engine was asked and what it wrote, in token ids.

    The first `num_given` it has not drawn: a person has chosen the last of them. `images` stand in the
    prompt, here without their data.
    """

    index: int
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    params: SamplingParams
    num_given: int = 0
    images: tuple[PromptImage, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as it was written. `is_whole`: it came to its own end. `attached` are the documents that
    were picked for the questions before it, the newest first, where its turns have images."""

    model: str
    revision: str
    finish_reason: str
    is_whole: bool
    turns: tuple[Turn, ...]
    attached: tuple[UUID, ...] = ()

    @property
    def num_tokens(self) -> int:
        return sum(len(turn.output_ids) for turn in self.turns)


def written(user: Any, message_id: object) -> Written:
    """A few queries. Raises NotFound, CannotLook."""
    generation = access.answer_for(user, message_id)
    if generation.message.status == MessageStatus.RUNNING:
        raise CannotLook(gettext("This answer is still being written."))
    if not _may_be_read(generation):
        raise CannotLook(
            gettext("A passage that this answer was written from is not available any more.")
        )
    if generation.message.status == MessageStatus.REFUSED:
        raise CannotLook(gettext("A policy has ended this answer."))
    if generation.trace.get("is_redacted"):  # its tokens are those that were written
        raise CannotLook(gettext("A policy has taken something out of this answer."))
    rows = [
        row for row in generation.turns.all() if row.output_ids and row.params and row.prompt_ids
    ]
    if not rows and generation.turns.filter(prompt_ids=[], output_ids=[]).exists():
        raise CannotLook(gettext("The tokens of this answer are not kept any more."))  # PROMPT_DAYS
    if not rows:
        raise CannotLook(gettext("Of this answer no tokens are known here."))
    given = generation.params.get("given", {})
    asked = tuple(
        Turn(
            *(row.index, tuple(row.prompt_ids), tuple(row.output_ids), turns.params_of(row)),
            num_given=given["tokens"] if given.get("turn") == row.index else 0,
            images=turns.images_of(row),
        )
        for row in rows
    )
    return Written(
        model=generation.model,
        revision=generation.model_revision,
        finish_reason=generation.message.finish_reason,
        is_whole=generation.message.status == MessageStatus.COMPLETE,
        turns=asked,
        attached=_attached_before(generation) if any(turn.images for turn in asked) else (),
    )


def _attached_before(generation: Generation) -> tuple[UUID, ...]:
    path = history.branch_to(generation.conversation, generation.message_id)
    return tuple(id_ for row in reversed(path) for id_ in history.attached_to(row))


async def with_images(answer: Written) -> Written:
    """With the data of the images in its turns. In the scope of the user. Raises CannotLook."""
    if not any(turn.images for turn in answer.turns):
        return answer
    images = (await images_among(answer.attached)).values()
    filled = []
    for turn in answer.turns:
        found = await off_loop(with_data, turn.images, images)
        if found is None:
            raise CannotLook(
                gettext("A picture that this answer was written from is not available any more.")
            )
        filled.append(replace(turn, images=found))
    return replace(answer, turns=tuple(filled))


def _may_be_read(generation: Generation) -> bool:
    """Whether all that documents have said in the prompt may still be read: it is in the ids of the
    prompt, and who writes on from these would be told of it."""
    path = history.branch_to(generation.conversation, generation.message_id)
    values = [one for row in path if row.found for one in row.found["excerpts"]]
    return None not in texts_of(map(Excerpt.from_json, values))


def check_model(rights: Rights, answer: Written) -> None:
    """Raises CannotLook where the model is not the one that wrote; of a cold one nobody knows yet. And
    UnknownModel where it may not be used, by this key or any more: it would compute."""
    state = next((s for s in engine().models("chat") if s.spec.name == answer.model), None)
    if state is None:
        raise CannotLook(
            gettext("The model %(model)s is no longer here.") % {"model": answer.model}
        )
    rights.check_models([answer.model])
    if engine().is_upstream(answer.model):
        raise CannotLook(
            gettext("Another server wrote this answer, and keeps how it drew to itself.")
        )
    _check_revision(answer, state)


def check_loaded(answer: Written) -> None:
    """As `check_model`, once the model is loaded and its revision known. Raises CannotLook."""
    _check_revision(answer, engine().state(answer.model))


def _check_revision(answer: Written, state: ModelState) -> None:
    if state.revision and state.revision != answer.revision:
        text = gettext(
            "The files of %(model)s have changed since this answer was written"
            " (revision %(then)s then, %(now)s now)."
        )
        revisions = {"then": answer.revision or "?", "now": state.revision}
        raise CannotLook(text % {"model": answer.model, **revisions})


@contextmanager
def one_at_a_time(user: Any) -> Iterator[None]:
    """Raises CannotLook while another second look of the same user is under way."""
    if user.pk in _looking:
        raise CannotLook(gettext("Another answer is just being looked at again. Wait for its end."))
    _looking.add(user.pk)
    try:
        yield
    finally:
        _looking.discard(user.pk)
