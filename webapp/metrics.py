"""/metrics: what this process counts and how its models are, in Prometheus' text format.

For a staff member's session, or a key with the scope `admin:read`, which Prometheus sends as its bearer
token. Each web process tells of itself; the queue of documents is the whole site's.
"""

import asyncio
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from chat import service
from chat.db import in_db
from inference import GpuReading
from retrieval.versions import num_unfinished
from webapp.tenancy import as_system


@never_cache
@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    if not request.user.is_staff:
        raise PermissionDenied
    now = CollectorRegistry()
    now.register(_Now(await in_db(_num_unfinished)()))
    now.register(await asyncio.to_thread(_Disk, settings.DATA_DIR))
    now.register(_Gpus(await asyncio.to_thread(service.gpu_readings)))
    text = generate_latest(REGISTRY) + generate_latest(now)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _num_unfinished() -> dict[str, int]:
    with as_system():  # a number over all users, no user's content
        return num_unfinished()


class _Now(Collector):
    """What is read when it is asked for. `waiting` are documents by the state of their versions."""

    def __init__(self, waiting: Mapping[str, int]) -> None:
        self._waiting = waiting

    def collect(self) -> Iterable[GaugeMetricFamily]:
        active = GaugeMetricFamily("vitrine_answers_active", "Answers that are being written.")
        active.add_metric([], service.num_active())
        documents = _gauge("vitrine_documents_unfinished", "Documents not indexed yet.", "state")
        for version_state, number in self._waiting.items():
            documents.add_metric([version_state], number)
        states = _gauge("vitrine_model_state", "1 for the state it is in.", "model", "state")
        sequences = _gauge("vitrine_engine_sequences", "Sequences in the engine.", "model", "state")
        kv = _gauge("vitrine_kv_tokens", "Tokens of the KV cache.", "model", "state")
        for state in service.model_states():
            name = state.spec.name
            states.add_metric([name, state.state], 1)
            stats = service.model_stats(name)
            if stats is not None:
                sequences.add_metric([name, "running"], stats.num_running)
                sequences.add_metric([name, "waiting"], stats.num_waiting)
                kv.add_metric([name, "used"], stats.kv_tokens_used)
                kv.add_metric([name, "cached"], stats.kv_tokens_cached)
                kv.add_metric([name, "total"], stats.kv_tokens_total)
        return active, documents, states, sequences, kv, *_of_workers()


def _of_workers() -> Iterable[GaugeMetricFamily]:
    labels = ("model", "worker")
    ready = _gauge("vitrine_worker_ready", "1 where it takes requests.", *labels)
    slow = _gauge("vitrine_worker_straggling", "1 where it has long been slow.", *labels)
    restarts = _gauge("vitrine_worker_restarts", "How often another took its place.", *labels)
    for worker in service.worker_states():
        names = [worker.model, str(worker.number)]
        ready.add_metric(names, worker.state == "ready")
        slow.add_metric(names, worker.is_straggling)
        restarts.add_metric(names, worker.num_restarts)
    return ready, slow, restarts


class _Disk(Collector):
    """Where everything lies that is kept, but for a database of one's own."""

    def __init__(self, path: Path) -> None:
        self._usage = shutil.disk_usage(path)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        disk = _gauge("vitrine_disk_bytes", "Of the disk where DATA_DIR lies.", "state")
        disk.add_metric(["free"], self._usage.free)
        disk.add_metric(["total"], self._usage.total)
        return (disk,)


class _Gpus(Collector):
    """What the driver has told; nothing at all where there is none."""

    def __init__(self, readings: Sequence[GpuReading]) -> None:
        self._readings = readings

    def collect(self) -> Iterable[GaugeMetricFamily]:
        if not self._readings:
            return ()
        memory = _gauge("vitrine_gpu_memory_bytes", "Memory of a GPU.", "gpu", "state")
        others = (
            (
                _gauge("vitrine_gpu_utilisation_ratio", "Share of time with a kernel.", "gpu"),
                "utilisation",
            ),
            (_gauge("vitrine_gpu_temperature_celsius", "Of a GPU.", "gpu"), "temperature_celsius"),
            (_gauge("vitrine_gpu_power_watts", "What a GPU draws.", "gpu"), "power_watts"),
        )
        for reading in self._readings:
            gpu = str(reading.index)
            memory.add_metric([gpu, "used"], reading.used_bytes)
            memory.add_metric([gpu, "total"], reading.total_bytes)
            for family, name in others:
                if (value := getattr(reading, name)) is not None:
                    family.add_metric([gpu], value)
        return memory, *(family for family, _ in others)


def _gauge(name: str, what: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, what, labels=labels)
