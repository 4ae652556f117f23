"""A worker is killed while it writes eight answers: all end, as if nothing had been."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from inference import (
    ChatTokenizer,
    Engine,
    Finished,
    GenerateRequest,
    Loading,
    Tokens,
    Update,
    json_schema_grammar,
    regex_grammar,
)
from tests.inference.conftest import engine_config, needs_kernels
from tests.inference.test_engine import PROMPTS, _end, _ids, _request, _run, _text

MAX_ATTEMPTS = 10
NUM_BEFORE_KILL = 12
ENDLESS = {"max_tokens": 100, "ignore_eos": True}
GREEDY = {"temperature": 0.0}
SEEDED = {"temperature": 1.0, "seed": 11}
# Characters of four bytes, each of which is a token of its own here.
MUSIC = {"max_tokens": 100, "grammar": regex_grammar("(𝄞|𝄢|𝄫|𝅘𝅥𝅮){24}")}
JSON = {
    "max_tokens": 100,
    "grammar": json_schema_grammar(
        {"type": "array", "items": {"enum": ["café", "世界", 7, None]}, "minItems": 60}
    ),
}
Streams = dict[str, GenerateRequest]


# In bfloat16 a row is rounded as its step is small or large: other tokens may come behind a kill.
EXACT = ["float32", pytest.param("int8", marks=needs_kernels)]


@pytest.fixture(params=EXACT)
async def engine(tiny_model: Path, request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    changes = {"dtype": request.param, "max_restarts_per_minute": MAX_ATTEMPTS + 1}
    running = Engine(engine_config(tiny_model, **changes))
    yield running
    await running.close()


async def test_a_kill_costs_eight_streams_a_pause_and_nothing_else(engine: Engine) -> None:
    """How far each has come at the kill depends on the machine; it is repeated until one was in the
    middle of a character, and one held text back that began like a stop string."""
    streams = await _streams(engine)
    calm = {n: await _run(engine, r) for n, r in _salted(streams, "calm").items()}
    tokenizer = await engine.tokenizer("tiny")
    for attempt in range(MAX_ATTEMPTS):
        storm = await _killed(engine, _salted(streams, f"storm {attempt}"))
        for name, updates in storm.items():
            assert _ids(updates) == _ids(calm[name]), name
            assert _text(updates) == _text(calm[name]), name
            assert _ending(updates) == _ending(calm[name]), name
        cut = {name: _before_the_kill(updates) for name, updates in storm.items()}
        if all(0 < len(_ids(cut[n])) < len(_ids(calm[n])) for n in streams) and (
            any(_is_mid_character(tokenizer, cut[n]) for n in ("music", "seeded music"))
            and any(_holds_back(tokenizer, streams[n], cut[n]) for n in ("stop", "seeded stop"))
        ):
            return
    raise AssertionError("never at such a moment")


async def test_a_kill_does_not_change_what_was_cached(engine: Engine) -> None:
    """The next worker reads the prompt again; that is not the caller's business."""
    request = _request("warm", PROMPTS[3], **ENDLESS, **GREEDY)
    await _run(engine, request)
    expected = _end(await _run(engine, request)).usage
    assert expected.cached_tokens == len(PROMPTS[3]) - 1
    for _ in range(MAX_ATTEMPTS):
        updates = (await _killed(engine, {"storm": request}))["storm"]
        assert _end(updates).usage == expected
        if len(_ids(_before_the_kill(updates))) < len(_ids(updates)):
            return
        await _run(engine, request)  # the answer was there before the kill
    raise AssertionError("never at such a moment")


async def _streams(engine: Engine) -> Streams:
    """Eight requests, half of them greedy and half drawn with a seed."""
    streams = {
        "plain": _request("plain", PROMPTS[1], **ENDLESS, **GREEDY),
        "seeded": _request("seeded", PROMPTS[3], **ENDLESS, **SEEDED, frequency_penalty=0.5),
        "json": _request("json", PROMPTS[2], **JSON, **GREEDY),
        "seeded json": _request("seeded json", PROMPTS[2], **JSON, **SEEDED),
        "music": _request("music", PROMPTS[0], **MUSIC, **GREEDY),
        "seeded music": _request("seeded music", PROMPTS[2], **MUSIC, **SEEDED),
        "stop": _request("stop", PROMPTS[2], **ENDLESS, **GREEDY, frequency_penalty=2),
        "seeded stop": _request("seeded stop", PROMPTS[1], **ENDLESS, **SEEDED),
    }
    for name in ("stop", "seeded stop"):
        said = await _run(engine, streams[name])
        params = replace(streams[name].params, stop=_stops(said))
        streams[name] = replace(streams[name], params=params)
    return streams


def _salted(streams: Streams, salt: str) -> Streams:
    """So that nobody finds anything in the cache: the usage would tell."""
    return {n: replace(r, cache_salt=f"{salt} {n}") for n, r in streams.items()}


def _stops(said: list[Update]) -> tuple[str, str]:
    """One that holds back all from the fifth token to the fiftieth and then does not match, and
    one that ends the answer later."""
    texts = [update.text for update in said if isinstance(update, Tokens)]
    begin, end = len("".join(texts[:5])), len("".join(texts[:50]))
    whole = "".join(texts)
    last = whole[-12:-4]
    assert whole.index(last) > end
    return whole[begin:end] + "\0", last


async def _killed(engine: Engine, streams: Streams) -> dict[str, list[Update]]:
    """What all hear whose worker is killed as soon as each has some tokens."""
    heard: dict[str, list[Update]] = {name: [] for name in streams}
    killed: list[int] = []

    async def listen(name: str) -> None:
        async for update in engine.generate(streams[name]):
            heard[name].append(update)
            pid = engine.worker_pid("tiny")
            if not killed and pid and all(len(_ids(h)) >= NUM_BEFORE_KILL for h in heard.values()):
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    await asyncio.gather(*map(listen, streams))
    assert killed
    return heard


def _ending(updates: list[Update]) -> tuple[object, ...]:
    end = _end(updates)
    return end.reason, end.stop, end.usage


def _before_the_kill(updates: list[Update]) -> list[Update]:
    """Up to the news that another worker starts; all, where the answer was there before."""
    first = next(i for i, update in enumerate(updates) if isinstance(update, Tokens))
    later = takewhile(lambda update: not isinstance(update, Loading), updates[first:])
    return [*updates[:first], *later]


def _is_mid_character(tokenizer: ChatTokenizer, updates: list[Update]) -> bool:
    return tokenizer.decode(_ids(updates)).endswith("\ufffd")


def _holds_back(tokenizer: ChatTokenizer, request: GenerateRequest, updates: list[Update]) -> bool:
    """Whether more is written than was shown."""
    is_ended = isinstance(updates[-1], Finished)
    written = tokenizer.replay(request.prompt_ids, tuple(_ids(updates)))
    return not is_ended and len(written) > len(_text(updates))
