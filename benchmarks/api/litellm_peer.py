"""LiteLLM's proxy: one model, one worker, a key, no database."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.api.client import Endpoint
from benchmarks.api.rounds import System
from benchmarks.api.server import Server, clean_environment
from tests.sites import free_port

REQUIREMENTS = ("litellm[proxy]==1.106.2",)
_KEY = "sk-benchmark"


@contextmanager
def running(programs: Path, folder: Path, upstream: Endpoint) -> Iterator[System]:
    port = free_port()
    model = {
        "model": f"openai/{upstream.model}",
        "api_base": f"http://127.0.0.1:{upstream.port}/v1",
        "api_key": upstream.key,
    }
    config = {
        "model_list": [{"model_name": upstream.model, "litellm_params": model}],
        "general_settings": {"master_key": _KEY},
        "litellm_settings": {"telemetry": False},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))  # which is YAML as well
    words = ["--config", str(path), "--host", "127.0.0.1", "--port", str(port)]
    environment = clean_environment(folder, LITELLM_LOCAL_MODEL_COST_MAP="True")
    command = [str(programs / "litellm"), *words, "--num_workers", "1", "--telemetry", "False"]
    with Server(command, port, folder, environment) as server:
        server.wait_for("/health/liveliness")
        endpoint = Endpoint(port, "/v1/chat/completions", upstream.model, _KEY)
        yield System("LiteLLM", endpoint, {"all": server.processes})
