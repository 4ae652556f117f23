"""Structured logs: one JSON object per line, each with the id of its request.

All floors log through `logging.getLogger(__name__)`; what is bound with structlog's contextvars
(request_id, user) is on every line of that context, in threads and tasks too. Lines go to a file,
because the console of `manage.py serve` is for people (webapp/console.py) and shows warnings only;
LOG_TO=stderr is for containers, where stderr is the log.

Conversation text, keys and e-mail addresses never go into a log: code logs ids, and `discreet`
removes what libraries would add.
"""

import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured
from structlog.types import EventDict, Processor, WrappedLogger

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
MAX_LOG_BYTES = 64 * 2**20

# Up to the end of that exception: the row that Postgres quotes holds what people wrote.
_DETAIL = re.compile(
    r"\n(DETAIL|CONTEXT):.*?(?=\n\n(?:The above exception|During handling)|\Z)", re.DOTALL
)
_UNWANTED = ("request", "scope", "taskName")


def logging_settings(log_file: Path | None, level: str) -> dict[str, Any]:
    """A dictConfig: JSON to `log_file` and warnings to the console; without a file JSON to stderr."""
    if log_file is not None:
        _make_folder(log_file.parent)
    structlog.configure(
        processors=[*_shared_processors(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"only_failures": {"()": "webapp.logs.OnlyFailures"}},
        "formatters": {
            "json": _formatter(structlog.processors.JSONRenderer()),
            "console": {"()": "webapp.logs.OneLine"},
        },
        "handlers": _file_handlers(log_file) if log_file else _stderr_handlers(),
        "root": {"handlers": ["json", "console"] if log_file else ["json"], "level": level},
        "loggers": {
            "django.request": {"level": "ERROR", "filters": ["only_failures"]},
            "django.security": {"level": "ERROR"},
            # Anybody can cause it, so it does not belong on the console.
            "django.security.DisallowedHost": {"handlers": ["json"], "propagate": False},
            "daphne": {"level": "WARNING"},
            "celery": {"level": "INFO"},
            "kombu": {"level": "WARNING"},
            "asyncio": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            # A tool server can cause it as often as it likes, and says what it likes in it.
            "mcp": {"level": "CRITICAL"},
            "psycopg.pool": {"level": "ERROR"},
        },
    }


def discreet(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Drop objects that would print private data, and rows that database errors quote."""
    for name in _UNWANTED:
        event.pop(name, None)
    if "exception" in event:
        event["exception"] = _DETAIL.sub(r"\n\1: (left out)", event["exception"])
    return event


class OnlyFailures(logging.Filter):
    """Of Django's lines about responses leaves those about exceptions, without the path.

    The others repeat ours; and in a path there may be the token of a set-up link.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info:
            return False
        match = getattr(getattr(record, "request", None), "resolver_match", None)
        if isinstance(record.args, tuple) and len(record.args) == 2:
            record.args = (record.args[0], match.route if match else "(no route)")
        return True


class OneLine(logging.Formatter):
    """The console's lines: without tracebacks, which are in the file."""

    def format(self, record: logging.LogRecord) -> str:
        failed = record.exc_info[0] if record.exc_info else None
        reason = f" ({failed.__name__}; see the log file)" if failed else ""
        return f"{record.levelname.lower()} {record.name}: {record.getMessage()}{reason}"


def rotate(log_file: Path) -> None:
    """Put a long file aside; every process opens a new one at its next line."""
    if _is_long(log_file):
        log_file.replace(log_file.with_suffix(".1.log"))


def rotate_appended(log_file: Path) -> None:
    """The same of a program that keeps its file open and writes at its end, wherever that is: the file
    is emptied. What is written while it is copied is lost."""
    if _is_long(log_file):
        shutil.copy(log_file, log_file.with_suffix(".1.log"))
        os.truncate(log_file, 0)


def _is_long(log_file: Path) -> bool:
    return log_file.exists() and log_file.stat().st_size > MAX_LOG_BYTES


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"{path} cannot be made ({error.strerror}).") from None


def _shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        discreet,
    ]


def _formatter(renderer: Processor) -> dict[str, Any]:
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _shared_processors(),
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    }


def _file_handlers(log_file: Path) -> dict[str, Any]:
    return {
        "json": {
            "class": "logging.handlers.WatchedFileHandler",
            "filename": str(log_file),
            "delay": True,
            "formatter": "json",
        },
        "console": {"class": "logging.StreamHandler", "level": "WARNING", "formatter": "console"},
    }


def _stderr_handlers() -> dict[str, Any]:
    return {"json": {"class": "logging.StreamHandler", "formatter": "json"}}
