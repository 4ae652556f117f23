"""Static files: collected with hashed names when sources change, served by the ASGI app itself."""

import logging
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from wsgiref.headers import Headers

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from servestatic import ServeStaticASGI

from webapp.asgi_types import Application
from webapp.page_files import ENTRIES, SHEETS

logger = logging.getLogger(__name__)

_FINGERPRINT = ".fingerprint"
_FOR_SANDBOXES = (
    "sandbox/",
    "vendor/mermaid.",
)  # pages without an origin are foreign to every site


def with_static_files(application: Any) -> Application:
    """`application` behind the static files. Names with a hash are immutable for browsers."""
    prefix = settings.STATIC_URL.strip("/")
    options: dict[str, Any] = {"allow_all_origins": False, "add_headers_function": _add_headers}
    if not settings.DEBUG:
        # A missing folder (tests, or a server that forgot collectstatic) is no reason to stop.
        root = settings.STATIC_ROOT if Path(settings.STATIC_ROOT).is_dir() else None
        served = ServeStaticASGI(cast(Any, application), root=root, prefix=prefix, **options)
        return cast(Application, served)
    served = ServeStaticASGI(cast(Any, application), autorefresh=True, max_age=0, **options)
    for folder in reversed(source_folders()):
        served.add_files(folder, prefix=prefix)
    return cast(Application, served)


def collect_if_changed() -> bool:
    """Run collectstatic unless the sources are those of the last time. Whether it ran."""
    if settings.DEBUG:
        return False  # served from the sources
    marker = Path(settings.STATIC_ROOT) / _FINGERPRINT
    fingerprint = sources_fingerprint()
    if marker.exists() and marker.read_text() == fingerprint:
        return False
    call_command("collectstatic", interactive=False, verbosity=0)
    marker.write_text(fingerprint)
    return True


def source_folders() -> list[Path]:
    """Every folder with static sources, first match first, as Django's finders have it."""
    own = [Path(folder) for folder in settings.STATICFILES_DIRS]
    in_apps = [Path(config.path) / "static" for config in apps.get_app_configs()]
    return [folder for folder in [*own, *in_apps] if folder.is_dir()]


def sources_fingerprint() -> str:
    """Changes with any name, size or time of a source file, and with what is joined. Opens no file."""
    how = (settings.STORAGES["staticfiles"]["BACKEND"], ENTRIES, SHEETS)
    digest = sha256(repr(how).encode())
    for finder in finders.get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _add_headers(headers: Headers, path: str, url: str) -> None:
    is_for_sandboxes = url.removeprefix(settings.STATIC_URL).startswith(_FOR_SANDBOXES)
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Cross-Origin-Resource-Policy"] = "cross-origin" if is_for_sandboxes else "same-origin"
