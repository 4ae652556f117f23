"""Pictures by a model on another server: what is asked is judged before it leaves, billed, and what the
server has made of the prompt is judged before anybody reads it.

What pictures show is judged by no policy, neither of those that are made nor of those that are given.
"""

from dataclasses import replace
from uuid import UUID

from chat.api_errors import ApiError
from chat.bills import billed
from chat.draining import is_draining
from chat.engine import engine
from chat.errors import ShuttingDown
from chat.events import RunUsage
from chat.leaving import fit_to_leave
from chat.rights import Rights
from inference import EngineError, PictureRequest, Pictures, Usage, about_picture_usage


def model_for_pictures(rights: Rights) -> str:
    """The first one. Raises ApiError where there is none for this person."""
    if models := rights.models("image"):
        return models[0].spec.name
    raise ApiError(404, "model_not_found", "There is no model for pictures here.", "model")


async def draw(rights: Rights, request: PictureRequest, *, within: UUID | None = None) -> Pictures:
    """`within` is the answer that it is drawn for, if it is one's. Raises EngineError, ChatError or
    ApiError."""
    if is_draining():
        raise ShuttingDown
    rights.require_model(request.model, "image")
    told = [request.prompt]
    (prompt,) = await fit_to_leave(rights, request.model, told, "input", param="prompt")
    request = replace(request, prompt=prompt)
    about = about_picture_usage(request, request.num_pictures)
    most_tokens = [about.prompt_tokens + about.completion_tokens]
    async with billed(rights, request.model, most_tokens=most_tokens, within=within) as bill:
        # For those who leave: the other server draws, and is paid, whether anybody waits or not.
        bill.usage = _charged(about)
        try:
            found = await engine().draw(request)
        except EngineError:
            bill.usage = RunUsage()
            raise
        bill.usage = _charged(found.usage)
    return await _fit_to_read(rights, request.model, found)


def _charged(usage: Usage) -> RunUsage:
    return RunUsage(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)


async def _fit_to_read(rights: Rights, model: str, found: Pictures) -> Pictures:
    """Prompts that the server has written anew are a model's words, and what the pictures are of."""
    revised = [one.revised_prompt for one in found.pictures]
    if not any(revised):
        return found
    revised = await fit_to_leave(rights, model, revised, "output", param="prompt")
    pairs = zip(found.pictures, revised, strict=True)
    pictures = tuple(replace(one, revised_prompt=text) for one, text in pairs)
    return replace(found, pictures=pictures)
