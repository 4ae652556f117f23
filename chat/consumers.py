"""The chat socket: parse, authorise, start, follow, send. Awaits nothing long.

Channels hands a consumer one frame at a time, so following a run happens in tasks of its own;
otherwise nobody would hear "stop" while an answer streams. The protocol is in docs/socket.md.
"""

import asyncio
import logging
from collections import Counter
from contextlib import aclosing
from typing import Any
from uuid import UUID

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from django.utils.translation import gettext
from structlog.contextvars import bound_contextvars, get_contextvars

from chat import access, answers, frames, notices, runs, temporary, values
from chat.accepted import accepted
from chat.actions import Draft, Sent
from chat.changes import Changes
from chat.db import in_db
from chat.deciding import decide_call
from chat.engine import engine, make_way
from chat.errors import ChatError, NotFound, TooManyRequests
from chat.events import TERMINAL, Phase, for_reader
from chat.following import Ended, News, Numbered, Reset, follow
from chat.retakes import Retake
from chat.rights import Rights
from chat.spans import new_trace_id
from chat.stopping import stop_run
from chat.windows import LocalWindows, Window
from chat.wire import AckWindow, dumps
from inference import EngineError
from retrieval.errors import RetrievalError

logger = logging.getLogger(__name__)

CLOSE_SIGN_IN = 4401
CLOSE_TOO_MANY = 4429
CLOSE_TRY_AGAIN = 1012  # "service restart": the page comes back and follows from where it was
MAX_FOLLOWED = 16  # runs per socket
MAX_SOCKETS = 64  # per user and process; a tab has one
CHECK_SESSION_S = 15.0
FRAMES = Window(
    "frames", 12_000, 60.0
)  # of one socket: a page with many answers acknowledges often

_num_sockets: Counter[Any] = Counter()


class ChatConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One browser tab."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.followers: dict[UUID, asyncio.Task[None]] = {}
        self.windows: dict[UUID, AckWindow] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.is_counted = False
        self.frames_heard = LocalWindows()
        self.socket_id = get_contextvars().get("request_id")

    @property
    def user(self) -> Any:
        return self.scope["user"]

    @property
    def rights(self) -> Rights:
        """By the user as the session's last look found it."""
        return Rights(self.user)

    # --- life -----------------------------------------------------------------------------------

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Also what ends by an exception or is cancelled must leave nothing behind.

        Channels calls `disconnect` only for a socket that says so itself.
        """
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._leave()

    async def dispatch(self, message: Any) -> None:
        """As the stock consumer does, which first asks a thread to close its old connections to the
        database. None of ours are there: those of in_db() are looked at with each piece of work."""
        handler = getattr(self, get_handler_name(message), None)
        if handler is None:
            raise ValueError(f"no handler for messages of type {message['type']}")
        await handler(message)

    async def connect(self) -> None:
        await self.accept()
        if not getattr(self.scope.get("user"), "is_authenticated", False):
            # Accepted first: a browser cannot read the code of a refused handshake.
            await self.close(CLOSE_SIGN_IN)
            return
        if _num_sockets[self.user.pk] >= MAX_SOCKETS:
            await self.close(CLOSE_TOO_MANY)
            return
        _num_sockets[self.user.pk] += 1
        self.is_counted = True
        self.changes = Changes(self.user, self._tell)
        await self.channel_layer.group_add(notices.user_group(self.user.pk), self.channel_name)
        self.tasks = [
            asyncio.create_task(self._tell_models()),
            asyncio.create_task(self._watch_session()),
        ]

    async def disconnect(self, code: int) -> None:
        await self._leave()

    async def _leave(self) -> None:
        """Twice does no harm."""
        for task in [*self.tasks, *self.followers.values()]:
            task.cancel()
        if self.is_counted:
            self.is_counted = False
            self.changes.close()
            _num_sockets[self.user.pk] -= 1
            if not _num_sockets[self.user.pk]:
                del _num_sockets[self.user.pk]
            await self.channel_layer.group_discard(
                notices.user_group(self.user.pk), self.channel_name
            )

    async def _watch_session(self) -> None:
        """Close once the session has ended; what the socket follows ends with it."""
        while True:
            await asyncio.sleep(CHECK_SESSION_S)
            try:
                if not await self.scope["is_signed_in"]():
                    await self.close(CLOSE_SIGN_IN)
                    return
            except Exception:  # Postgres or Redis is away; a watch that ended would never close
                logger.warning("a session could not be checked, trying again", exc_info=True)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        client_id: str | None = None
        run_id: UUID | None = None
        try:
            self._count_frame()
            frame = frames.parse(text_data or "")
            client_id = getattr(frame, "client_id", None)
            run_id = getattr(frame, "run", None)
            trace_id = getattr(frame, "trace_id", None) or new_trace_id()
            with bound_contextvars(request_id=trace_id, socket=self.socket_id):
                await self._handle(frame)
        except (ChatError, EngineError, RetrievalError) as error:
            await self._tell_error(error, client_id, run_id)
        except Exception:
            logger.exception("a frame could not be handled")
            text = gettext("Something went wrong on the server. Nothing was lost; try again.")
            problem = ChatError(text)
            await self._tell_error(problem, client_id, run_id)

    def _count_frame(self) -> None:
        """Raises TooManyRequests. Frames that ask for an answer are counted once more, by user."""
        admission = self.frames_heard.admit([FRAMES])
        if not admission.is_admitted:
            raise TooManyRequests(admission)

    async def _handle(self, frame: frames.Frame) -> None:
        match frame:
            case frames.SendMessage():
                await self._send_message(frame)
            case frames.RegenerateAnswer() | frames.ContinueAnswer():
                await self._answer_again(frame)
            case frames.SendTemporary():
                await self._send_temporary(frame)
            case frames.FollowRun(run, after):
                await self._follow(run, after)
            case frames.UnfollowRun(run):
                self._unfollow(run)
            case frames.StopRun(run, chars):
                await self._stop(run, chars)
            case frames.DecideCall(run, call, allow):
                await self._decide(run, call, allow)
            case frames.AckRun(run, seq):
                if window := self.windows.get(run):
                    window.acknowledge(seq)
            case frames.Ping():
                await self._tell({"type": "pong"})

    # --- what a browser asks for ----------------------------------------------------------------

    async def _send_message(self, frame: frames.SendMessage) -> None:
        if not await self._may_write():
            return
        draft = Draft(
            client_id=frame.client_id,
            text=frame.text,
            model=frame.model or self.rights.default_model(),
            conversation_id=frame.conversation,
            parent_id=frame.parent,
            tools=self.rights.tools,
            setup=frame.setup,
            beside=frame.beside,
            picked=frame.picked,
        )
        sent = await answers.send(self.rights, draft, channel=self.channel_name)
        told = await accepted(sent)
        await self._accept({"type": "message.accepted", **told}, frame.client_id, sent)

    async def _answer_again(self, frame: frames.RegenerateAnswer | frames.ContinueAnswer) -> None:
        if not await self._may_write():
            return
        client_id, tools = frame.client_id, self.rights.tools
        if isinstance(frame, frames.ContinueAnswer):
            sent = await answers.go_on(self.rights, frame.answer, client_id, tools=tools)
        else:
            retake = Retake(
                client_id,
                frame.answer,
                frame.model,
                frame.wish,
                tools,
                frame.without,
                confirms=frame.confirms,
            )
            sent = await answers.regenerate(self.rights, retake)
        told = await accepted(sent)
        del told["message"], told["answers"]
        await self._accept({"type": "answer.accepted", **told}, client_id, sent)

    async def _send_temporary(self, frame: frames.SendTemporary) -> None:
        if not await self._may_write():
            return
        ask = temporary.Ask(
            client_id=frame.client_id,
            model=frame.model or self.rights.default_model(),
            messages=tuple(temporary.said_of(frame.messages)),
            wish=frame.wish,
            goes_on=frame.goes_on,
            setup=frame.setup,
        )
        run = await temporary.answer(self.rights, ask)
        told = {"type": "temporary.accepted", "client_id": frame.client_id}
        await self._tell({**told, "run": str(run.id)})
        await self._follow(run.id, 0)

    async def _may_write(self) -> bool:
        make_way()
        is_signed_in: bool = await self.scope["is_signed_in"]()
        if not is_signed_in:
            await self.close(CLOSE_SIGN_IN)
        return is_signed_in

    async def _accept(self, frame: dict[str, Any], client_id: str, sent: Sent) -> None:
        """Say what was begun, and follow it."""
        await self._tell({**frame, "client_id": client_id, "run": str(sent.generation.pk)})
        for generation in sent.generations:
            try:
                await self._follow(generation.pk, 0)
            except ChatError as problem:  # not of what was sent: that is accepted
                await self._tell_error(problem, None, generation.pk)

    async def _follow(self, run_id: UUID, after: int) -> None:
        run = runs.get(run_id)
        if run is None:
            try:
                message_id = (await in_db(access.generation_for)(self.user, run_id)).message_id
            except DatabaseError:
                # The page believes that it follows: let it come back and ask again.
                logger.warning("a run could not be looked up", exc_info=True)
                await self.close(CLOSE_TRY_AGAIN)
                return
        elif run.user_id == self.user.pk:
            message_id = run.message_id
        else:
            raise NotFound("run")
        self._unfollow(run_id)
        if len(self.followers) >= MAX_FOLLOWED:
            raise ChatError(f"One socket follows at most {MAX_FOLLOWED} runs.")
        task = asyncio.create_task(self._relay(run_id, message_id, after), name=f"follow {run_id}")
        self.followers[run_id] = task

    def _unfollow(self, run_id: UUID) -> None:
        if task := self.followers.pop(run_id, None):
            task.cancel()

    async def _stop(self, run_id: UUID, chars: int | None) -> None:
        await stop_run(self.user, run_id, chars)
        await self._tell({"type": "run.stopping", "run": str(run_id)})

    async def _decide(self, run_id: UUID, call_id: str, allow: bool) -> None:
        await decide_call(self.user, run_id, call_id, allow)
        await self._tell({"type": "run.decided", "run": str(run_id), "call": call_id})

    # --- what a browser hears -------------------------------------------------------------------

    async def _relay(self, run_id: UUID, message_id: UUID, after: int) -> None:
        """Send a run's events until it ends, no faster than the browser acknowledges them."""
        window = self.windows[run_id] = AckWindow()
        try:
            async with aclosing(follow(self.user, run_id, after)) as news:
                async for piece in news:
                    await self._relay_piece(run_id, message_id, window, piece)
        except DatabaseError:
            logger.warning("run %s cannot be read on", run_id, exc_info=True)
            await self.close(CLOSE_TRY_AGAIN)
        except ChatError as error:
            await self._tell_error(error, None, run_id)
        except TimeoutError:
            logger.info("a reader of run %s does not read; dropped until it comes back", run_id)
            await self.close(4408)
        except Exception:  # a page that hears nothing more would wait for good
            logger.exception("run %s cannot be followed", run_id)
            await self.close(CLOSE_TRY_AGAIN)
        finally:
            if self.windows.get(run_id) is window:
                del self.windows[run_id]
            if self.followers.get(run_id) is asyncio.current_task():
                del self.followers[run_id]

    async def _relay_piece(
        self, run_id: UUID, message_id: UUID, window: AckWindow, piece: News
    ) -> None:
        run = str(run_id)
        match piece:
            case Numbered(seq, event):
                text = dumps(
                    {
                        "type": "run.event",
                        "run": run,
                        "message": str(message_id),
                        "seq": seq,
                        "event": for_reader(event),
                    }
                )
                # The end is never held back: it frees the run's place in the window anyhow.
                if not isinstance(event, TERMINAL):
                    await window.room_for(seq, len(text))
                await self.send(text)
            case Phase():
                if window.is_open:
                    await self._tell(
                        {"type": "run.phase", "run": run, "phase": values.phase_value(piece)}
                    )
            case Reset():
                await self._tell({"type": "run.reset", "run": run})
            case Ended(message):
                await self._tell({"type": "run.ended", "run": run, "message": message})

    async def _tell_models(self) -> None:
        # Whose page it is: one that comes back may find somebody else's session in its browser.
        frame: dict[str, Any] = {"type": "hello", "user": str(self.user.pk)}
        async for _ in engine().changes():
            models = [values.model_value(state) for state in self.rights.models("chat")]
            await self._tell({**frame, "models": models})
            frame = {"type": "models.changed"}
            await asyncio.sleep(0.1)  # loading changes often; ten times a second is enough

    async def _tell(self, frame: dict[str, Any]) -> None:
        await self.send(dumps(frame))

    async def _tell_error(
        self,
        error: ChatError | EngineError | RetrievalError,
        client_id: str | None,
        run_id: UUID | None,
    ) -> None:
        frame: dict[str, Any] = {"type": "error", "code": error.code, "message": str(error)}
        optional = {
            "client_id": client_id,
            "run": str(run_id) if run_id else None,
            "retry_after_s": error.retry_after_s,
        }
        await self._tell(frame | {k: v for k, v in optional.items() if v is not None})

    # --- notices from the channel layer ---------------------------------------------------------

    async def conversation_changed(self, notice: dict[str, Any]) -> None:
        if notice.get("except_for") != self.channel_name:
            self.changes.add(notice["id"])

    async def conversation_deleted(self, notice: dict[str, Any]) -> None:
        self.changes.discard(notice["id"])
        await self._tell({"type": "conversation.deleted", "id": notice["id"]})

    async def library_changed(self, notice: dict[str, Any]) -> None:
        self.changes.look_again()
        await self._tell({"type": "library.changed"})
