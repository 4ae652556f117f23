"""Other people's servers beside ours, unmodified, before the same scripted upstream.

Each is installed by whoever runs this benchmark into an environment of its own, and by nobody else.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.api import litellm_peer, open_webui_peer, upstream
from benchmarks.api.client import Endpoint
from benchmarks.api.rounds import System, idle_row
from benchmarks.api.server import Server
from benchmarks.table import Row
from tests.sites import free_port

_ROOT = Path(__file__).resolve().parents[2]
_STAMP = "installed.txt"


@dataclass(frozen=True)
class Peer:
    """`start` gets where its programs lie, an empty folder and the upstream."""

    requirements: tuple[str, ...]
    start: Callable[[Path, Path, Endpoint], AbstractContextManager[System]]


PEERS = {
    "litellm": Peer(litellm_peer.REQUIREMENTS, litellm_peer.running),
    "open-webui": Peer(open_webui_peer.REQUIREMENTS, open_webui_peer.running),
}


def programs_of(name: str, requirements: tuple[str, ...], environments: Path) -> Path:
    """Where an environment's programs lie, which is made unless it is there already."""
    place = environments / name
    programs, stamp = place / "bin", place / _STAMP
    wanted = "\n".join(requirements)
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(programs / "pip"), "install", "--quiet", *requirements], check=True)
        stamp.write_text(wanted)
    return programs


@contextmanager
def running_upstream(folder: Path) -> Iterator[System]:
    port = free_port()
    command = [sys.executable, "-m", upstream.__name__, str(port)]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    with Server(command, port, _folder(folder, "upstream"), environment) as server:
        server.wait_for("/v1/models")
        endpoint = Endpoint(port, upstream.PATH, upstream.MODEL)
        yield System("upstream", endpoint, {"all": server.processes})


@contextmanager
def running_peer(
    name: str, environments: Path, folder: Path, before: Endpoint
) -> Iterator[tuple[System, Row]]:
    """It, and what its start took: it has answered once."""
    peer = PEERS[name]
    programs = programs_of(name, peer.requirements, environments)
    began_s = time.monotonic()
    with peer.start(programs, _folder(folder, name), before) as system:
        system.warm()
        yield system, idle_row(system, time.monotonic() - began_s)


def _folder(folder: Path, name: str) -> Path:
    own = folder / name
    own.mkdir()
    return own
