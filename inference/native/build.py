"""Compiles the C sources beside this file into one library, once per machine and source."""

import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

logger = logging.getLogger(__name__)
_SOURCE_DIR = Path(__file__).parent
# OpenMP is for the compiler, not for the linker: torch's is to serve us too, or two pools would spin.
_FLAGS = ("-O3", "-march=native", "-Xpreprocessor", "-fopenmp", "-shared", "-fPIC")
_TIMEOUT_S = 120.0


def built_library() -> Path | None:
    """The compiled library; None where there is no compiler or it refuses, with the reason logged."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        logger.info("no C compiler: torch's operations are used in place of our kernels")
        return None
    try:
        folder = _cache_dir()
        library = folder / f"kernels-{_fingerprint(compiler)}.so"
        if not library.exists():
            _compile(compiler, library)
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        logger.info("our kernels do not compile here: %s", reason.strip()[-500:])
        return None
    return library


def _compile(compiler: str, library: Path) -> None:
    """Two workers may do it at once: each writes a file of its own, and the last one stays."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        fresh = Path(folder) / "kernels.so"
        sources = sorted(map(str, _SOURCE_DIR.glob("*.c")))
        subprocess.run(  # noqa: S603  our own words
            [compiler, *_FLAGS, "-o", str(fresh), *sources],
            check=True,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
        fresh.replace(library)


def _fingerprint(compiler: str) -> str:
    """Of all that the library depends on: sources, flags, compiler, and what the processor can."""
    digest = hashlib.sha256(" ".join((os.path.realpath(compiler), *_FLAGS)).encode())
    for source in sorted(_SOURCE_DIR.glob("*.[ch]")):
        digest.update(source.read_bytes())
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "flags")):
            digest.update(line.encode())
        elif not line:
            break
    return digest.hexdigest()[:24]


def _cache_dir() -> Path:
    """A folder that only we can write to: what lies there is run. Raises OSError where none can be."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(root):  # "~", of a user who has no home: what is run would lie anywhere
        raise FileNotFoundError("there is no folder to keep them in")
    folder = Path(root) / "vitrine"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"others may write to {folder}")
    return folder
