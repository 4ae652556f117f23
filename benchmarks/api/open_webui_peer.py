"""Open WebUI, its API alone: asked with the token of its first user, the administrator."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from benchmarks.api.client import Endpoint
from benchmarks.api.rounds import System
from benchmarks.api.server import Server, clean_environment
from tests.sites import ADMIN_EMAIL, PASSWORD, free_port

# torch as it is here, where it is the build for processors; its newest one brings gigabytes for GPUs.
REQUIREMENTS = ("open-webui==0.12.4", "torch==2.13.0")
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "OFFLINE_MODE": "true",
    "ENABLE_OLLAMA_API": "false",
    "RAG_EMBEDDING_ENGINE": "openai",  # else it loads a model for documents, of which there are none
    "ANONYMIZED_TELEMETRY": "false",
    "DO_NOT_TRACK": "true",
    "SCARF_NO_ANALYTICS": "true",
}


@contextmanager
def running(programs: Path, folder: Path, upstream: Endpoint) -> Iterator[System]:
    port = free_port()
    environment = clean_environment(
        folder,
        DATA_DIR=str(folder),
        WEBUI_SECRET_KEY="of this run",
        OPENAI_API_BASE_URL=f"http://127.0.0.1:{upstream.port}/v1",
        OPENAI_API_KEY=upstream.key,
        **_OFFLINE,
    )
    command = [str(programs / "open-webui"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with Server(command, port, folder, environment) as server:
        server.wait_for("/health")
        form = {"name": "Admin", "email": ADMIN_EMAIL, "password": PASSWORD}
        url = f"http://127.0.0.1:{port}"
        signed_up = httpx2.post(f"{url}/api/v1/auths/signup", json=form, timeout=60)
        signed_up.raise_for_status()
        key = signed_up.json()["token"]
        headers = {"Authorization": f"Bearer {key}"}
        httpx2.get(f"{url}/api/models", headers=headers, timeout=60).raise_for_status()
        endpoint = Endpoint(port, "/api/chat/completions", upstream.model, key)
        yield System("Open WebUI", endpoint, {"all": server.processes})
