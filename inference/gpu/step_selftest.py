"""Proof, when a model is loaded, that its decode steps on the device compute what the plain way does.

Each part is tried by itself: first steps that stay on the device, then their graphs. What fails or
computes something else is left out, and the log says why.
"""

import logging
from collections.abc import Iterator
from collections.abc import Sequence as Rows
from contextlib import contextmanager
from time import monotonic
from typing import Any

import torch

from inference import attention, sampler
from inference.config import EngineConfig
from inference.gpu.decode_step import DecodeStep
from inference.gpu.graphs import Capture, CudaCapture, Graphs
from inference.gpu.sampling import BROKEN
from inference.messages import GenerateRequest, SamplingParams
from inference.model_runner import ModelRunner
from inference.out_of_memory import is_fault
from inference.paged_kv import PagedKV
from inference.selftest import MAX_RELATIVE_ERROR
from inference.sequence import Sequence

logger = logging.getLogger(__name__)
# Of logits of a whole model in 16 bits, whose products round otherwise in another batch. What is written
# or read in a wrong place differs by its own size.
_MAX_ROUNDING = 0.05
_PROMPT_LENGTHS = (5, 17, 40)
_KNOBS: tuple[dict[str, Any], ...] = ({}, {"temperature": 0.9}, {"temperature": 0.9, "top_k": 20})
_ROUNDS = ((0, 1, 2), (2, 0), (1,), (1, 2, 0))  # who decodes in them, two steps each
_ROOM_TOKENS = 64
_LAUNCHES = ("graphs", "overlap")
# What a layer may read without the kernels: the tables of all seats, however short the sequences are. It
# holds about three times that at once, of the 15 % of a GPU that a cache leaves. Steps of 28 layers that
# read nearly as much took 40 ms on an H200; with contexts of 40,000 tokens, 64 seats would read 20 GiB.
_MOST_PLAIN_BYTES = 2**29


def make_decode_step(
    name: str, runner: ModelRunner, num_sequences: int, config: EngineConfig
) -> DecodeStep | None:
    """For a model that computes on a GPU by itself; None where it does not, or may not, or is wrong."""
    is_alone = type(runner) is ModelRunner and isinstance(runner.kv, PagedKV)
    if runner.device.type == "cpu" or not is_alone or not {*_LAUNCHES} & {*config.gpu_step}:
        return None
    if not attention.uses_kernels():
        try:
            read_bytes = _plain_bytes(runner, num_sequences)
        except Exception as error:  # no room for them
            if is_fault(error):
                raise
            logger.warning("%s decodes step by step: %s", name, error)
            return None
        if read_bytes > _MOST_PLAIN_BYTES:
            logger.warning(
                "%s decodes step by step: without the kernels, a layer would read %.1f GiB for %d",
                *(name, read_bytes / 2**30, num_sequences),
            )
            return None
    capture = CudaCapture() if "graphs" in config.gpu_step else None
    return checked_step(name, runner, num_sequences, capture)


def _plain_bytes(runner: ModelRunner, num_sequences: int) -> int:
    """What the largest layer of a model would read in each step by `inference.gpu.plain`, in float32."""
    assert isinstance(runner.kv, PagedKV)
    if not runner.kv.layers:
        with _sequences(runner):
            pass  # they have written, and so there are pages
    per_token = max(sum(t[0, 0].numel() for t in pair) for pair in runner.kv.layers.values())
    return num_sequences * runner.kv.max_context_tokens * per_token * torch.float32.itemsize


def checked_step(
    name: str,
    runner: ModelRunner,
    num_sequences: int,
    capture: Capture | None,
    buckets: Rows[int] | None = None,
) -> DecodeStep | None:
    """A step that is right; with graphs, where there are any and they are right as well."""
    try:
        step = DecodeStep(runner, num_sequences, buckets=buckets)
        problem = problem_of(step, runner)
    except Exception as error:
        if is_fault(error):
            raise
        problem = f"{type(error).__name__}: {error}"
    if problem:
        logger.warning("%s decodes step by step, and draws apart from that: %s", name, problem)
        return None
    if capture is None:
        return step
    try:
        with_graphs = DecodeStep(runner, num_sequences, graphs=Graphs(capture), buckets=buckets)
        with_graphs.capture()
        problem = problem_of(with_graphs, runner)
    except Exception as error:  # no memory for them, or something that no graph may hold
        if is_fault(error):
            raise
        problem = f"{type(error).__name__}: {error}"
    if problem:
        logger.warning("%s runs without CUDA graphs: %s", name, problem)
        return step
    return with_graphs


def problem_of(step: DecodeStep, runner: ModelRunner) -> str:
    """What is wrong with it, or nothing. Over the runner's cache, which has to have some room."""
    dtype = next(runner.model.parameters()).dtype
    limit = _MAX_ROUNDING if dtype.itemsize < 4 else MAX_RELATIVE_ERROR
    with _sequences(runner) as sequences:
        for who in _ROUNDS:
            batch = [
                sequences[i] for i in who if i < min(len(sequences), step.buffers.num_sequences)
            ]
            if not batch:
                continue
            error, is_drawn = _two_steps(step, runner, batch)
            if not error <= limit:
                return f"it computes something else (relative error {error:.1e})"
            if not is_drawn:
                return "it draws other tokens than the processor from the same logits"
    return ""


@contextmanager
def _sequences(runner: ModelRunner) -> Iterator[list[Sequence]]:
    """Some that have read their prompts, always the same ones, while they are used."""
    rng = torch.Generator().manual_seed(0)
    room_tokens = min(runner.kv.max_context_tokens, _ROOM_TOKENS)
    longest = room_tokens - 2 * len(_ROUNDS) - 1
    sequences = []
    try:
        for number, (length, knobs) in enumerate(zip(_PROMPT_LENGTHS, _KNOBS, strict=True)):
            ids = torch.randint(3, 100, (max(1, min(length, longest)),), generator=rng).tolist()
            params = SamplingParams(
                **{"max_tokens": 99, "seed": number, "temperature": 0.0, **knobs}
            )
            sequence = Sequence(GenerateRequest(f"self-test {number}", "", tuple(ids), params))
            sequences.append(sequence)
            if not runner.kv.reserve(sequence.id, room_tokens):
                sequences.pop()
                break
            result = runner.run([(sequence, len(ids))])
            sequence.append(int(result.logits[0].argmax()), monotonic())
        assert sequences, "the cache has no room for the self-test"
        yield sequences
    finally:
        for sequence in sequences:
            runner.kv.release(sequence.id)


def _two_steps(step: DecodeStep, runner: ModelRunner, batch: list[Sequence]) -> tuple[float, bool]:
    """The second is launched before the first is read, and then both are run by the runner.

    Returns the largest relative error of a row's logits, and whether the tokens follow from them.
    """
    flights = []
    for _ in range(2):
        flights.append(step.launch(batch))
        for sequence in batch:
            sequence.promise()
    first, second = (flight.read() for flight in flights)
    found = step.logits_of(flights[1]).clone()
    for sequence in batch:
        sequence.take_back()
    if BROKEN in (*first, *second):
        return float("nan"), False
    runner.run([(sequence, 1) for sequence in batch])
    for sequence, token_id in zip(batch, first, strict=True):
        sequence.append(token_id, monotonic())
    expected = runner.run([(sequence, 1) for sequence in batch]).logits
    drawn = sampler.sample(
        found.float().cpu(),
        [sequence.request.params for sequence in batch],
        [len(sequence.token_ids) for sequence in batch],
    )
    for sequence, token_id in zip(batch, second, strict=True):
        sequence.append(token_id, monotonic())
    errors = (found - expected).norm(dim=1) / expected.norm(dim=1)
    return float(errors.max()), drawn == second
