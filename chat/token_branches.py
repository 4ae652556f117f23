"""Another answer from one token on: the text before it stays, another token takes its place.

It is what is done after a crash (recovery.py), on purpose: a run whose log holds what was said goes on
behind prompt and output ids, to the token as the engine has read them.
"""

from dataclasses import dataclass, replace

from django.db import transaction
from django.utils.translation import gettext

from chat import access, actions, answers, notices, remembering, run_log, runs
from chat.admission import check_requests
from chat.answer_rows import begin_answer, message_once, params_of, rights_now
from chat.answer_state import MAX_TURNS
from chat.asking import AnswerRequest, TurnSoFar
from chat.db import in_db
from chat.draining import is_draining
from chat.engine import engine
from chat.errors import BadFrame, ChatError, ShuttingDown
from chat.events import Delta, LogEvent, PartKind, Started, ToolCall, ToolResult
from chat.models import Generation, Message
from chat.parts import Parts, fold
from chat.refusals import CODE
from chat.retakes import found_for
from chat.rights import Rights
from chat.screen import screen_of
from chat.second_looks import Turn, check_model, written
from chat.storable import storable
from chat.tools import tools_named
from inference import AnswerParser, Call, ChatTokenizer, Reasoning


class Withheld(ChatError):
    """A policy does not let the other answer begin so."""

    code = CODE


@dataclass(frozen=True, slots=True)
class Fork:
    """Where to branch: token number `token` (from 0) of an engine turn, and the id to take instead."""

    client_id: str
    answer_id: str
    turn: int
    token: int
    choice: int


async def branch(rights: Rights, fork: Fork) -> Generation:
    """Begin the other answer. The same client id again finds the first one's.

    Raises NotFound, CannotLook, BadFrame, Withheld, SignedOut or ShuttingDown, or that there is no right
    to it.
    """
    if is_draining():
        raise ShuttingDown
    answer = await in_db(written)(rights.user, fork.answer_id)
    check_model(rights, answer)
    await check_requests(rights)
    turn = next((turn for turn in answer.turns if turn.index == fork.turn), None)
    if turn is None or not 0 <= fork.token < len(turn.output_ids):
        raise BadFrame("The answer has no such token.")
    tokenizer = await engine().tokenizer(answer.model)
    if not _can_be_written(fork.choice, tokenizer):
        raise BadFrame(gettext("This token cannot be written in an answer."))
    turn = replace(turn, output_ids=(*turn.output_ids[: fork.token], fork.choice))
    old = await in_db(access.answer_for)(rights.user, fork.answer_id)
    said = _said(old, turn, tokenizer)
    await _check(rights, old, said)
    generation, events = await in_db(_begin)(rights, fork, turn, said)
    if events:
        so_far = TurnSoFar(turn.prompt_ids, turn.output_ids, turn.images)
        await answers.take_up(generation, events, so_far, None)
        await notices.conversation_changed(rights.user.pk, generation.conversation_id)
    return generation


def _can_be_written(token_id: int, tokenizer: ChatTokenizer) -> bool:
    """Ids that the vocabulary has, but for marks that open and close turns."""
    if not 0 <= token_id < 2**31:
        return False
    piece = tokenizer.token_bytes(token_id).decode("utf-8", "replace")
    return piece != "" and piece not in tokenizer.added_tokens


async def _check(rights: Rights, old: Generation, said: list[LogEvent]) -> None:
    """What begins the other answer is judged as any answer is: a person chose its last word, with which
    tokens may be text that were none before, and policies may have changed. Raises Withheld."""
    request = AnswerRequest(
        run_id=str(old.pk),
        model=old.model,
        messages=[],
        user=str(rights.user.pk),
        source="chat",
        api_key=rights.key_name,
        conversation_id=old.conversation_id,
        message_id=old.message_id,
    )
    screen = await screen_of(request)
    if not screen.may_stop("output"):
        return
    parts = fold(said)
    outcome = await screen.judge("output", [part["text"] for part in parts])
    refused = await screen.decide("output", outcome.without_redacting())
    if refused is not None:
        raise Withheld(refused.message)


def _begin(
    rights: Rights, fork: Fork, turn: Turn, said: list[LogEvent]
) -> tuple[Generation, list[LogEvent]]:
    """The rows, and the events that the new run begins with; none where it was begun before."""
    with transaction.atomic():
        now = rights_now(rights)
        user = now.user
        if (made := message_once(user, fork.client_id)) is not None:
            return access.answer_for(user, made.pk), []
        old = access.answer_for(user, fork.answer_id)
        conversation = access.conversation_for(user, old.conversation.pk, lock=True)
        question = Message.with_deleted.get(children=old.message)
        # The prompt holds it; looked for anew, something else might be found, and be cited.
        found = found_for(old.message)
        events = [*found, *_earlier(old.message.parts, old.model, turn), *said]
        actions.touch(conversation)
        actions.choose_path(conversation, question.pk, version=conversation.version)
        question.conversation = conversation
        given = {"turn": turn.index, "tokens": len(turn.output_ids)}
        kept = {k: v for k, v in old.params.items() if k not in ("stop_chars", "decided")}
        params = kept | {"api_key": None} | params_of(now) | {"given": given, "sent": None}
        params["num_brought"] = len(events)
        allowed = (*now.tools, *remembering.tools_of(now, conversation, [old.model]))
        params["tools"] = [name for name in old.params.get("tools", []) if name in allowed]
        owner, model = runs.PROCESS_ID, old.model
        generation = begin_answer(now, question, model, params, owner, fork.client_id)
        run_log.append(generation.pk, runs.PROCESS_ID, 1, events)
    return generation, events


def _earlier(parts: Parts, model: str, turn: Turn) -> list[LogEvent]:
    """What the answer said and did in the turns before this one."""
    events: list[LogEvent] = []
    num_chars = {"text": 0, "reasoning": 0}
    index, was_result = 0, False
    for part in parts:
        kind = part["type"]
        index += was_result and kind != "tool_result"
        was_result = kind == "tool_result"
        if index >= turn.index:
            break
        if not any(isinstance(e, Started) and e.turn == index for e in events):
            events.append(Started(model, "", turn.params.seed, index))
        match kind:
            case "text" | "reasoning":
                events.append(Delta(part["text"], num_chars[kind], kind))
                num_chars[kind] += len(part["text"])
            case "tool_call":
                events.append(ToolCall(part["id"], part["name"], part["arguments"]))
            case "tool_result":
                events.append(ToolResult(part["id"], part["content"], part["is_error"]))
    return events


def _said(old: Generation, turn: Turn, tokenizer: ChatTokenizer) -> list[LogEvent]:
    """The turn from its start up to the chosen token, read as the turn itself reads it."""
    tools = tools_named(old.params.get("tools", [])) if turn.index < MAX_TURNS - 1 else ()
    tail = tokenizer.tail_of(turn.prompt_ids)
    parser = AnswerParser(tokenizer.chat_template, tail, [tool.schema() for tool in tools])
    params = turn.params
    text = tokenizer.replay(turn.prompt_ids, turn.output_ids, params.stop, params.min_tokens)
    started = Started(
        old.model,
        old.model_revision,
        params.seed,
        turn.index,
        turn.prompt_ids,
        params,
        turn.images,
    )
    events: list[LogEvent] = [started]
    num_chars = _chars_before(old.message.parts, turn.index)
    ids = turn.output_ids
    for segment in parser.feed(text):
        if isinstance(segment, Call):
            raise BadFrame(
                gettext("An answer can be changed up to where it calls a tool, not behind it.")
            )
        kind: PartKind = "reasoning" if isinstance(segment, Reasoning) else "text"
        events.append(Delta(storable(segment.text), num_chars[kind], kind, ids))
        num_chars[kind] += len(segment.text)
        ids = ()
    if ids:
        events.append(Delta("", num_chars["text"], "text", ids))
    return events


def _chars_before(parts: Parts, turn: int) -> dict[str, int]:
    """How many characters of each kind the turns before have written."""
    num_chars = {"text": 0, "reasoning": 0}
    index, was_result = 0, False
    for part in parts:
        index += was_result and part["type"] != "tool_result"
        was_result = part["type"] == "tool_result"
        if index < turn and part["type"] in num_chars:
            num_chars[part["type"]] += len(part["text"])
    return num_chars
