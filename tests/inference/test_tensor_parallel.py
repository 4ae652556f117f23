"""A model that is split over processes says the same, or says why it cannot be split."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
import torch

from inference import Engine, Failed, GenerateRequest, follower, ranks
from inference.channel import BlockingChannel
from inference.config import EngineConfig, parse_ranks
from inference.paged_kv import PagedKV
from inference.ranks import RankSetup
from tests.inference.conftest import engine_config
from tests.inference.test_engine import PROMPTS, _end, _ids, _request, _run
from tests.inference.test_host import _until
from tests.inference.tiny_models import make_model

TWO = (("tiny", 2),)
SETTINGS: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "gemma2": {"sliding_window": 16, "attn_logit_softcapping": 2.0},
    "qwen3_moe": {"moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2},
}


@asynccontextmanager
async def engine_of(path: Path, **settings: object) -> AsyncIterator[Engine]:
    running = Engine(engine_config(path, **settings))
    try:
        yield running
    finally:
        await running.close()


def requests() -> list[GenerateRequest]:
    """Greedy and drawn ones, some of whose prompts take several steps to read."""
    return [
        _request(f"r{n}", prompt, max_tokens=12, ignore_eos=True, temperature=n % 2, seed=n)
        for n, prompt in enumerate(PROMPTS)
    ]


async def told(engine: Engine) -> list[list[int]]:
    return [_ids(one) for one in await asyncio.gather(*(_run(engine, r) for r in requests()))]


def followers() -> list[psutil.Process]:
    """Processes of ours that belong to a rank 0."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "inference.follower" in " ".join(_words(one))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.parametrize("model_type", SETTINGS)
async def test_a_split_model_says_the_same(model_type: str, tmp_path: Path) -> None:
    path = make_model(tmp_path / "model", model_type, **SETTINGS[model_type])
    async with engine_of(path, kv_layout="paged") as whole:
        expected = await told(whole)
    async with engine_of(path, tensor_parallel=TWO, step_budget_tokens=64) as split:
        assert await told(split) == expected
        assert len(followers()) == 1
        # What was read is found again: all ranks have kept their part of it.
        again = await _run(split, _request("again", PROMPTS[3], max_tokens=1))
        assert _end(again).usage.cached_tokens >= len(PROMPTS[3]) // 16 * 16 - 16
    await _until(lambda: not followers())


def test_each_rank_keeps_its_keys_and_values_as_rank_0_does(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose books are for all: pages of twice the size have no room beside the weights."""
    made: list[PagedKV] = []

    class Channel:
        def receive(self) -> int:
            if made:
                raise EOFError
            return 7

    def runner_of(model: object, kv: PagedKV) -> None:
        made.append(kv)

    monkeypatch.setattr(ranks, "join", lambda setup: None)
    monkeypatch.setattr("inference.assembly.load_part", lambda *_: SimpleNamespace(model=None))
    monkeypatch.setattr("inference.model_runner.ModelRunner", runner_of)
    config = engine_config(tiny_model, kv_dtype="fp8")
    setup = RankSetup(1, 2, Path("meeting"), "tiny", tiny_model, config)
    with pytest.raises(EOFError):
        follower._follow(cast("BlockingChannel", Channel()), setup)
    assert made[0].kept_as == torch.float8_e4m3fn
    assert made[0].num_blocks == 7


async def test_where_one_rank_dies_the_answer_goes_on(tiny_model: Path) -> None:
    request = _request("long", PROMPTS[2], max_tokens=150, ignore_eos=True, temperature=1, seed=5)
    async with engine_of(tiny_model) as whole:
        expected = _ids(await _run(whole, request))
    async with engine_of(tiny_model, tensor_parallel=TWO) as split:
        for rank in (0, 1):
            updates = split.generate(replace(request, request_id=f"rank {rank} dies"))
            heard = [await anext(updates)]
            while len(_ids(heard)) < 5:
                heard.append(await anext(updates))
            (follower,) = followers()
            lead = split.worker_pid("tiny")
            assert lead is not None
            os.kill(lead if rank == 0 else follower.pid, signal.SIGKILL)
            heard += [update async for update in updates]
            assert _ids(heard) == expected
            assert follower not in followers()


@pytest.mark.parametrize(
    ("model_type", "settings", "why"),
    [
        ("qwen3", {"num_attention_heads": 3, "num_key_value_heads": 3}, "3 num_attention_heads"),
        ("qwen3", {"num_key_value_heads": 1}, "1 num_key_value_heads"),
        ("lfm2", {"layer_types": ["conv", "full_attention", "conv"]}, "keeps states"),
    ],
)
async def test_what_cannot_be_split_is_refused(
    model_type: str, settings: dict[str, Any], why: str, tmp_path: Path
) -> None:
    path = make_model(tmp_path / "model", model_type, **settings)
    async with engine_of(path, tensor_parallel=TWO) as split:
        end = (await _run(split, _request("one", PROMPTS[0])))[-1]
    assert isinstance(end, Failed)
    assert why in end.message
    await _until(lambda: not followers())


def test_a_plan_that_forgets_a_sum_is_seen(tmp_path: Path) -> None:
    """Each rank would go on with its own part of what attention gives, without an error."""
    context = multiprocessing.get_context("spawn")
    plans = ({}, {"layers.*.self_attn.o_proj": "colwise"})
    with context.Pool(2) as pool:
        asked = [(tmp_path, rank, plans) for rank in range(2)]
        for right, wrong in pool.starmap(_checked, asked, chunksize=1):
            assert right is None
            assert wrong is not None
            assert "qwen3" in wrong


def _checked(folder: Path, rank: int, plans: Sequence[dict[str, str]]) -> list[str | None]:
    """What one of two processes says of splitting an architecture by each changed plan."""
    from transformers import AutoConfig

    from inference.errors import ModelRefused
    from inference.ranks import RankSetup, join
    from inference.ranks_selftest import check_ranks

    config = AutoConfig.for_model("qwen3", num_attention_heads=4, num_key_value_heads=2)
    own_plan = type(config).base_model_tp_plan
    join(RankSetup(rank, 2, folder / "meeting", "m", folder, EngineConfig(folder)))
    found: list[str | None] = []
    for plan in plans:
        type(config).base_model_tp_plan = {**own_plan, **plan}
        try:
            check_ranks(config, 2)
        except ModelRefused as error:
            found.append(str(error))
        else:
            found.append(None)
    return found


def test_each_split_model_is_named() -> None:
    assert parse_ranks(["org/large=2", "b=4"]) == (("org/large", 2), ("b", 4))
    for wrong in ("2", "a=", "=2", "a=0", "a=many"):
        with pytest.raises(ValueError, match="MODEL=NUMBER"):
            parse_ranks([wrong])
    config = EngineConfig(Path("models"), tensor_parallel=(("a", 2),))
    assert (config.num_ranks("a"), config.num_ranks("b")) == (2, 1)
