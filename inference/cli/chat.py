"""`python -m inference chat`: a conversation at a terminal, or one question through a pipe."""

import argparse
import secrets
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType

from inference.cli.answer import Answer
from inference.cli.arguments import engine_config
from inference.cli.conversation import Conversation
from inference.cli.engine_thread import EngineThread
from inference.cli.screen import Screen, figures, phase
from inference.defaults import DEFAULT_MAX_TOKENS
from inference.errors import (
    ContextTooLong,
    EngineError,
    GenerationFailed,
    InvalidParameter,
    RequestError,
)
from inference.messages import (
    Failed,
    Finished,
    FinishReason,
    GenerateRequest,
    SamplingParams,
    Tokens,
)
from inference.parsing import AnswerParser

_WRONG_REQUEST = {RequestError.code, ContextTooLong.code, InvalidParameter.code}
_HELP = """\
/new           forget the conversation
/system TEXT   tell the model TEXT first, from now on; without TEXT, show what it is told
/help          this
/quit          leave, as Ctrl-D does
Ctrl-C stops an answer; a second one leaves."""


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0, or an EngineError that says what went wrong."""
    config = engine_config(arguments, arguments.model, arguments.draft)
    screen = Screen()
    is_dialog = sys.stdin.isatty() and screen.is_terminal
    question = "" if is_dialog else _read_question()
    if not is_dialog and not question:
        raise RequestError("There is no question: standard input is empty.")
    with EngineThread(config) as engine:
        engine.start_loading(config.default_model)  # while a first question is typed
        chat = Chat(engine, screen, arguments)
        if is_dialog:
            chat.converse()
        else:
            chat.answer_once(question)
    return 0


def _read_question() -> str:
    try:
        return sys.stdin.buffer.read().decode().strip()
    except UnicodeDecodeError as error:
        raise RequestError(f"Standard input is no text in UTF-8: {error.reason}.") from None


class Chat:
    """One conversation with the default model of an engine."""

    def __init__(self, engine: EngineThread, screen: Screen, arguments: argparse.Namespace) -> None:
        self.engine = engine
        self.screen = screen
        self.arguments = arguments
        self.model = engine.engine.config.default_model
        self.tokenizer = engine.run(engine.engine.tokenizer(self.model))
        self.conversation = Conversation(self.tokenizer, arguments.system)
        self._ids = count(1)
        self._draft_problem = ""

    def answer_once(self, question: str) -> None:
        """Answer what came through a pipe; a Ctrl-C ends more than the answer there."""
        if self._answer(question) == "abort":
            raise KeyboardInterrupt

    def converse(self) -> None:
        """Question and answer in turn, until Ctrl-C or Ctrl-D at the prompt."""
        import readline  # noqa: F401  input() has a history and line editing by it

        self.screen.note(f"{self.model}. /help tells what can be done; Ctrl-D leaves.")
        while True:
            try:
                line = input("> ").strip()
            except (EOFError, KeyboardInterrupt):
                self.screen.note("")
                return
            if line == "/quit":
                return
            if line and not self._obeys(line):
                self._try_to_answer(line)

    def _obeys(self, line: str) -> bool:
        """Do what a line commands. False: it is a question."""
        command, _, text = line.partition(" ")
        match command:
            case "/new":
                self.conversation.clear()
                self.screen.note("A new conversation.")
            case "/system":
                self.conversation.system = text.strip() or self.conversation.system
                self.screen.note(f"System: {self.conversation.system or '(nothing)'}")
            case "/help":
                self.screen.note(_HELP)
            case _:
                if not command.startswith("/") or text:
                    return False
                self.screen.note(f"There is no {command}; /help tells what there is.")
        return True

    def _try_to_answer(self, question: str) -> None:
        """A question that cannot be answered leaves the conversation as it was.

        Raises EngineError where no other one could be answered either.
        """
        try:
            self._answer(question)
        except EngineError as error:
            if self.engine.engine.state(self.model).state == "failed":
                raise
            self.screen.note(str(error))

    # --- one answer ---------------------------------------------------------------------------

    def _answer(self, question: str) -> FinishReason:
        for state in self.engine.load(self.model):
            self.screen.show_progress(phase(state))
        self._note_draft_problem()
        prompt_ids = self.conversation.ask(
            question,
            max_context_tokens=self.engine.engine.context_tokens(self.model),
            max_tokens=self.arguments.max_tokens,
        )
        if self.conversation.num_forgotten:
            self.screen.note(
                "The conversation has outgrown the model's context: its oldest"
                f" {self.conversation.num_forgotten} messages are forgotten."
            )
        request = GenerateRequest(
            f"chat-{next(self._ids)}", self.model, prompt_ids, self._sampling_params()
        )
        answer = Answer(self._parser(prompt_ids), self.screen)
        try:
            with _first_interrupt(lambda: self.engine.abort(request)):
                end = self._show(request, answer)
        finally:
            self.conversation.answer(answer.text)
        self._note_end(end)
        return end.reason

    def _note_draft_problem(self) -> None:
        """Say once why a draft model does not guess."""
        info = self.engine.engine.info(self.model)
        problem = info.draft_problem if info else ""
        if problem and problem != self._draft_problem:
            self.screen.note(problem)
        self._draft_problem = problem

    def _parser(self, prompt_ids: tuple[int, ...]) -> AnswerParser:
        return AnswerParser(self.tokenizer.chat_template, self.tokenizer.tail_of(prompt_ids))

    def _show(self, request: GenerateRequest, answer: Answer) -> Finished:
        """Stream an answer to the screen. Raises EngineError where it fails."""
        for update in self.engine.generate(request):
            match update:
                case Tokens(text=text):
                    answer.feed(text)
                case Finished():
                    answer.finish()
                    return update
                case Failed(code, message):
                    answer.finish()
                    raise (RequestError if code in _WRONG_REQUEST else GenerationFailed)(message)
                case _ if news := phase(update):
                    self.screen.show_progress(news)
        raise AssertionError("an answer without an end")

    def _note_end(self, end: Finished) -> None:
        if end.reason == "abort":
            self.screen.note("stopped")
        elif end.reason == "length":
            self.screen.note(f"The answer was cut off after {end.usage.completion_tokens} tokens.")
        if self.arguments.stats:
            self.screen.note(figures(end.usage, end.timings))

    def _sampling_params(self) -> SamplingParams:
        """As the model's makers want it, but for what the command line asks."""
        asked, default = self.arguments, self.engine.engine.sampling_defaults(self.model)
        return SamplingParams(
            max_tokens=asked.max_tokens or DEFAULT_MAX_TOKENS,
            seed=secrets.randbits(63) if asked.seed is None else asked.seed,
            temperature=default.temperature if asked.temperature is None else asked.temperature,
            top_p=default.top_p if asked.top_p is None else asked.top_p,
            top_k=default.top_k,
            min_p=default.min_p,
            repetition_penalty=default.repetition_penalty,
        )


@contextmanager
def _first_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Within, the first Ctrl-C calls `stop`; the next one is a KeyboardInterrupt as ever."""

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, previous)
        stop()

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
