"""The rows that an answer begins with. Synchronous; the caller holds the transaction."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from chat.concurrency import check_concurrent_runs
from chat.errors import SignedOut
from chat.holds import reserve
from chat.models import Generation, Message, MessageStatus, Role
from chat.rights import Rights
from chat.tools.remember import without_unfit

LEASE_S = 6.0  # how long an answer waits for a process that died before another takes it up


def rights_now(rights: Rights) -> Rights:
    """As of now, with the user's row locked. Raises SignedOut."""
    return replace(rights, user=user_now(rights.user))


def user_now(user: Any) -> Any:
    """The user's row, locked, so that looking, counting and starting are one step for all tabs.

    It is also the user as of now: a socket's own may be hours old. Raises SignedOut.
    """
    # Of itself only: locking the tier that comes with it would make all its users wait in line.
    users = get_user_model()._default_manager.select_for_update(of=("self",))
    now = users.get(pk=user.pk)
    if not now.is_active:
        raise SignedOut
    return now


def message_once(user: Any, client_id: str) -> Message | None:
    """What was made under this client id, deleted or not."""
    rows = Message.with_deleted.filter(conversation__owner_id=user.pk, client_id=client_id)
    # Almost always nothing was: then the cheap question is enough.
    return rows.select_related("conversation").first() if rows.exists() else None


def params_of(rights: Rights) -> dict[str, Any]:
    """What a run may take, by the user's tier, behind whom it goes, and whose key pays for it."""
    tier = rights.user.tier
    limits = {"weight": tier.weight, "context_tokens": tier.context_tokens}
    behind = {"priority": "background"} if rights.is_background else {}
    return limits | behind | _key_of(rights)


def _key_of(rights: Rights) -> dict[str, Any]:
    name = rights.key_name
    return {"api_key": name[0], "api_key_prefix": name[1]} if name else {}


def key_of(params: dict[str, Any]) -> tuple[int, str] | None:
    """The API key that an answer of these params was asked for with: its id and prefix."""
    key = params.get("api_key")
    return None if key is None else (key, params.get("api_key_prefix", ""))


def begin_answer(
    rights: Rights,
    question: Message,
    model: str,
    params: dict[str, Any],
    lease_owner: str,
    client_id: str,
) -> Generation:
    """Another answer, with a client id of its own. Otherwise as begin_answers()."""
    return begin_answers(rights, question, [model], params, lease_owner, client_id=client_id)[0]


def begin_answers(
    rights: Rights,
    question: Message,
    models: Sequence[str],
    params: dict[str, Any],
    lease_owner: str,
    *,
    client_id: str | None = None,
) -> list[Generation]:
    """Empty answers, chosen among their siblings, and the runs that will write them.

    A question that is not saved yet goes in the same statement. The user's row is locked. Raises
    UnknownModel, TooManyRuns or BudgetSpent.
    """
    rights.check_models(models)
    check_concurrent_runs(rights, len(models))
    generations = answers_to(question, models, params, lease_owner, client_id=client_id)
    answers = [generation.message for generation in generations]
    Message.objects.bulk_create([question, *answers] if question._state.adding else answers)
    Generation.objects.bulk_create(generations)
    reserve(rights, [generation.pk for generation in generations], models)
    return generations


def answers_to(
    question: Message,
    models: Sequence[str],
    params: dict[str, Any],
    lease_owner: str,
    *,
    client_id: str | None = None,
) -> list[Generation]:
    """The runs with their answers, not saved yet."""
    conversation = question.conversation
    answers = [
        Message(
            conversation=conversation,
            parent=question,
            role=Role.ASSISTANT,
            status=MessageStatus.RUNNING,
            model=model,
            client_id=client_id,
            chosen=conversation.version,
        )
        for model in models
    ]
    return [
        Generation(
            conversation=conversation,
            message=answer,
            model=answer.model,
            params=without_unfit(answer.model, params),
            lease_owner=lease_owner,
            lease_until=timezone.now() + timedelta(seconds=LEASE_S),
        )
        for answer in answers
    ]
