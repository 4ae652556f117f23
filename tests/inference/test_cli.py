"""`python -m inference` in processes of its own: by a pipe, and at a terminal."""

import contextlib
import json
import math
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import psutil
import pytest
from transformers import AutoModelForCausalLM

from inference import BUILTIN, BUILTIN_EMBEDDING, ChatTokenizer, Loading, Prefill, Queued
from inference.builtin import MODEL_DIR
from inference.cli.arguments import engine_config, parse
from inference.cli.conversation import Conversation
from inference.cli.jobs import Job, Span, Trace, decode_span, prefill_span, whole_span
from inference.cli.random_model import make_random_model, tensors
from inference.cli.screen import Screen, phase
from inference.cli.shapes import SHAPES
from inference.loader import check_complete
from inference.weights import read_config
from tests.engine_workers import engine_workers
from tests.inference.tiny_models import make_model

COMMAND = (sys.executable, "-m", "inference")


def _run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], input=typed, capture_output=True, text=True, timeout=120
    )


def _is_one_sentence(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1 and "Traceback" not in text


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that never ends its answer by itself, and takes its time."""
    return make_model(
        tmp_path_factory.mktemp("models") / "endless",
        eos_token_id=None,
        num_hidden_layers=16,
        max_position_embeddings=8192,
    )


ENDED_SOON = ("--seed", "7", "--temperature", "1", "--max-tokens", "12", "--stats")


@pytest.fixture(scope="module")
def drawn(endless: Path) -> subprocess.CompletedProcess[str]:
    """What that model answers with a seed."""
    return _run("chat", str(endless), *ENDED_SOON, typed="Go on")


# --- the engine that is asked for -------------------------------------------------------------


def test_the_variables_of_the_web_application_count_here_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = engine_config(parse(["chat"]))
    assert (alone.memory_bytes, alone.sleep_after_s, alone.kv_layout) == (None, None, "auto")
    monkeypatch.setenv("VITRINE_MEMORY_GIB", "1.5")
    monkeypatch.setenv("VITRINE_SLEEP_AFTER_S", "7")
    monkeypatch.setenv("VITRINE_KV_LAYOUT", "paged")
    told = engine_config(parse(["chat"]))
    assert (told.memory_bytes, told.sleep_after_s, told.kv_layout) == (3 * 2**29, 7, "paged")
    said = engine_config(parse(["chat", "--memory-gib", "2", "--kv-layout", "slabs"]))
    assert (said.memory_bytes, said.sleep_after_s, said.kv_layout) == (2 * 2**30, 7, "slabs")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VITRINE_MEMORY_GIB", "0.1"),
        ("VITRINE_MEMORY_GIB", "nan"),
        ("VITRINE_MEMORY_GIB", "much"),
        ("VITRINE_SLEEP_AFTER_S", "-1"),
        ("VITRINE_KV_LAYOUT", "heaps"),
    ],
)
def test_a_variable_that_makes_no_sense_is_told(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as left:
        parse(["chat"])
    assert left.value.code == 2
    assert f"'{value}'" in capsys.readouterr().err


# --- by a pipe --------------------------------------------------------------------------------


def test_a_question_through_a_pipe_gets_the_answer_and_nothing_else() -> None:
    """Of a process that loads neither torch nor Django: what is left at its end is looked at."""
    code = (
        "import sys; sys.argv = ['inference', 'chat']; from inference.__main__ import main; "
        "code = main(); assert not {'torch', 'django', 'safetensors'} & sys.modules.keys(); "
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="What is 17 * 23?\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"\w", done.stdout)
    assert done.stdout.endswith("\n")
    assert not re.search(r"<\||\x1b|^> ", done.stdout)


def test_a_seed_and_a_directory_give_the_same_answer_again(
    endless: Path, drawn: subprocess.CompletedProcess[str]
) -> None:
    again = _run("chat", str(endless), *ENDED_SOON, typed="Go on")
    assert drawn.stdout == again.stdout
    assert "cut off after 12 tokens" in drawn.stderr
    assert re.search(r"TTFT \d+\.\d\d s, 12 tokens, \d+\.\d tok/s, 0 of \d+ prompt", drawn.stderr)


@pytest.mark.parametrize(
    ("words", "typed", "code", "reason"),
    [
        (["chat", "gpt-9"], "hi", 2, "no model 'gpt-9'"),
        (["chat", "--draft", "gpt-9"], "hi", 2, "no model 'gpt-9'"),
        (["chat"], "word " * 3000, 2, "context holds 2048"),
        (["chat"], " \n", 2, "standard input is empty"),
        (["chat", "--temperature", "-1"], "hi", 2, "temperature: -1.0"),
    ],
)
def test_what_is_asked_wrong_is_one_sentence(
    words: list[str], typed: str, code: int, reason: str
) -> None:
    done = _run(*words, typed=typed)
    assert done.returncode == code
    assert done.stdout.strip() == ""
    assert reason in done.stderr
    assert _is_one_sentence(done.stderr)


def test_what_is_no_text_is_said_to_be_none() -> None:
    done = subprocess.run([*COMMAND, "chat"], input=b"caf\xe9", capture_output=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == b""
    assert _is_one_sentence(done.stderr.decode())


def test_a_draft_model_guesses_or_it_is_said_why_not(
    endless: Path, drawn: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    small = make_model(tmp_path / "small", tokenizer=endless, num_hidden_layers=1)
    words = ("chat", str(endless), *ENDED_SOON)
    refused = _run(*words, "--draft", str(small), typed="Go on")
    assert "by the tokens [2] and not by []" in refused.stderr
    small = make_model(tmp_path / "same", tokenizer=endless, num_hidden_layers=1, eos_token_id=None)
    helped = _run(*words, "--draft", str(small), typed="Go on")
    assert "draft" not in helped.stderr
    assert drawn.stdout == refused.stdout == helped.stdout


def test_a_model_that_cannot_be_served_says_why(endless: Path, tmp_path: Path) -> None:
    for file in endless.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[: 2**20])
    done = _run("chat", str(tmp_path), typed="hi")
    assert done.returncode == 1
    assert "cut short" in done.stderr
    assert _is_one_sentence(done.stderr)


def test_a_worker_that_dies_again_and_again_is_one_sentence(endless: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", str(endless), "--max-tokens", "8000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write("Go on")
        process.stdin.close()
        process.stdout.read(1)  # so the first worker is killed in the middle of its answer
        killed: set[int] = set()
        while process.poll() is None:
            for worker in engine_workers(process.pid):
                if worker.pid not in killed and _is_old(worker):
                    killed.add(worker.pid)
                    worker.kill()
            time.sleep(0.05)
        assert process.stderr is not None
        assert _is_one_sentence(process.stderr.read())
    assert process.returncode == 1
    assert len(killed) >= 2


def _is_old(process: psutil.Process) -> bool:
    """Whether it has lived for long enough to be in the middle of something."""
    return time.time() - process.create_time() > 1


def test_models_are_listed_with_their_sizes_or_what_is_wrong(tmp_path: Path) -> None:
    broken = tmp_path / "Org" / "Broken"
    broken.mkdir(parents=True)
    (broken / "config.json").write_text("{}")
    done = _run("models", "--models-dir", str(tmp_path))
    builtin, embedding, pulled = done.stdout.splitlines()
    assert re.match(rf"{BUILTIN_EMBEDDING} +embedding ", embedding)
    assert re.match(rf"{BUILTIN} +chat .* M parameters .* MiB .* tokens", builtin)
    assert re.match(r"Org/Broken .*no safetensors files", pulled)


# --- at a terminal ----------------------------------------------------------------------------


class Terminal:
    """The command at a pseudo-terminal; `seen` is everything that it wrote."""

    def __init__(self, *words: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
            env=os.environ | {"TERM": "dumb"},
        )
        os.close(slave)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, pattern: str, *, after: int = 0) -> int:
        """Read until the pattern is seen behind `after`; returns where it ends."""
        while not (found := re.compile(pattern).search(self.seen, after)):
            self.seen += os.read(self._master, 65_536).decode(errors="replace")
        return found.end()

    def read_for(self, time_s: float) -> bool:
        """Read on, as a terminal does: who writes to one that does not waits. True: it has ended."""
        deadline_s = time.monotonic() + time_s
        while self.process.poll() is None and time.monotonic() < deadline_s:
            if select.select([self._master], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # the other side is closed
                    self.seen += os.read(self._master, 65_536).decode(errors="replace")
        return self.process.poll() is not None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C goes to who has the terminal
    # A shell's background jobs inherit that it is ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_one(*words: str) -> Terminal:
        opened.append(Terminal(*words))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(
    terminal: Callable[..., Terminal], endless: Path
) -> None:
    chat = terminal("chat", str(endless), "--max-tokens", "8000")
    begin = chat.wait_for("> ")
    chat.type("Go on for ever\n")
    begin = chat.wait_for(r"Loading \d+ %", after=begin)
    begin = chat.wait_for(r"Reading \d+ of \d+ tokens", after=begin)
    begin = chat.wait_for(r"\S{20}", after=begin)
    chat.type("\x03")
    begin = chat.wait_for(r"stopped[\s\S]*> ", after=begin)
    chat.type("/system You are a pirate.\n")
    begin = chat.wait_for(r"System: You are a pirate[\s\S]*> ", after=begin)
    chat.type("/nonsense\n")
    begin = chat.wait_for(r"There is no /nonsense[\s\S]*> ", after=begin)
    chat.type("\x04")
    assert chat.process.wait(timeout=60) == 0


def test_a_second_ctrl_c_leaves(terminal: Callable[..., Terminal], endless: Path) -> None:
    chat = terminal("chat", str(endless), "--max-tokens", "8000")
    begin = chat.wait_for("> ")
    chat.type("Go on for ever\n")
    begin = chat.wait_for(r"Reading \d+ of \d+ tokens[\s\S]*\S{20}", after=begin)
    (worker,) = engine_workers(chat.process.pid)
    worker.send_signal(signal.SIGSTOP)  # it cannot hear of the first
    chat.type("\x03")
    chat.read_for(1.0)
    chat.type("\x03")
    for _ in range(3):
        if chat.read_for(20.0):
            break
        chat.type("\x03")  # two that come while the process has no core are one
    assert chat.process.returncode == 130
    assert not worker.is_running()


def test_a_terminal_shows_no_control_characters_of_a_model() -> None:
    class Tty(StringIO):
        def isatty(self) -> bool:
            return True

    shown, piped = Tty(), StringIO()
    for answers in (shown, piped):
        Screen(answers, StringIO()).write("a\x1b]0;title\x07b\tc\n")
    assert shown.getvalue() == "a\N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER}b\tc\n"
    assert piped.getvalue() == "a\x1b]0;title\x07b\tc\n"


def test_every_phase_has_its_words() -> None:
    assert phase(Loading("loading weights", 0.456)) == "Loading 46 %: loading weights"
    assert phase(Queued(2)) == "Queued, number 2"
    assert phase(Queued(2, 3.4)) == "Queued, number 2, about 3 s"
    assert phase(Prefill(5, 9)) == "Reading 5 of 9 tokens"
    assert phase(Prefill(5, 9, 4)) == "Reading 5 of 9 tokens, 4 from the cache"


def test_a_conversation_that_outgrows_the_context_forgets_its_oldest_turns() -> None:
    chat = Conversation(ChatTokenizer.load(MODEL_DIR), "You are Bob.")
    limit = int(read_config(MODEL_DIR)["max_position_embeddings"])
    num_forgotten = []
    for turn in range(12):
        ids = chat.ask(f"{turn}: " + "word " * 200, max_context_tokens=limit, max_tokens=None)
        chat.answer("yes")
        assert len(ids) <= 3 * limit // 4
        num_forgotten.append(chat.num_forgotten)
    assert num_forgotten[0] == 0
    assert num_forgotten[-1] > 0
    assert num_forgotten == sorted(num_forgotten)
    chat.clear()
    chat.ask("again", max_context_tokens=limit, max_tokens=None)
    assert chat.num_forgotten == 0


# --- measuring --------------------------------------------------------------------------------


def test_bench_measures_random_weights_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    words = ("--random", "tiny", "--rounds", "2", "--tokens", "16", "--json", str(file))
    done = _run("bench", *words)
    assert done.returncode == 0, done.stderr
    result = json.loads(file.read_text())
    measured = {row["measured"]: row for row in result["rows"]}
    assert list(measured) == [
        "prefill of 512",
        "TTFT of 512",
        "TTFT, all but 32 cached",
        "decode, 1 at once",
        "decode, 4 at once",
        "decode, 16 at once",
    ]
    for name, row in measured.items():
        assert 0 < row["lower"] <= row["median"] <= row["upper"]
        assert name in done.stdout
    assert result["machine"]["cores"] >= 1


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "tiny"])
def test_a_shape_is_that_of_its_name(shape: str) -> None:
    """Counted by the tensors that would be written: the makers say 494 M, 596 M and 8.19 B."""
    num_parameters = sum(math.prod(size) for _, size in tensors(SHAPES[shape]))
    assert (
        num_parameters
        == {
            "qwen2.5-0.5b": 494_032_768,
            "qwen3-0.6b": 596_049_920,
            "qwen3-8b": 8_190_735_360,
        }[shape]
    )


def test_a_model_of_random_weights_has_all_that_its_config_asks_for(tmp_path: Path) -> None:
    path = make_random_model("tiny", tmp_path / "tiny")
    model, report = AutoModelForCausalLM.from_pretrained(path, output_loading_info=True)
    check_complete(model, report)
    assert report["unexpected_keys"] == set()
    tokenizer = ChatTokenizer.load(path)
    ids = tokenizer.encode_chat([{"role": "user", "content": "Grüße!"}])
    assert "Grüße!" in tokenizer.decode(list(ids))
    assert all(tokenizer.token_bytes(n) for n in range(SHAPES["tiny"]["vocab_size"]))


def _trace(started_s: float, *token_s: float, num_prompt: int = 10, num_cached: int = 0) -> Trace:
    job = Job((0,) * num_prompt, len(token_s))
    return Trace(job, started_s, list(token_s), num_cached=num_cached)


def test_spans_count_what_was_computed_in_them() -> None:
    early = _trace(0.0, 1.0, 3.0, 4.0, 5.0, num_cached=4)
    late = _trace(0.5, 3.0, 4.0, 5.0, 6.0)
    assert prefill_span([early, late]) == Span(0.0, 3.0, 16)
    assert decode_span([early, late]) == Span(3.0, 5.0, 4)
    assert whole_span([early, late]) == Span(0.0, 6.0, 8)
    assert early.gaps_s == [2.0, 1.0, 1.0]
    assert late.ttft_s == 2.5


def test_jobs_that_were_never_at_it_together_are_counted_whole() -> None:
    early = _trace(0.0, 1.0, 2.0, 3.0)
    assert decode_span([early, _trace(0.5, 4.0, 5.0)]) == Span(1.0, 5.0, 3)
    assert decode_span([early, _trace(0.5, 3.0, 4.0)]) == Span(1.0, 4.0, 3)
