"""Logs stay short: those of our own processes, and those of the servers, which keep theirs open."""

import os
from pathlib import Path

import pytest

from webapp import logs


@pytest.mark.parametrize("rotate", [logs.rotate, logs.rotate_appended])
def test_a_long_log_is_put_aside_and_a_short_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rotate: object
) -> None:
    assert callable(rotate)
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 10)
    log, older = tmp_path / "a.log", tmp_path / "a.1.log"
    rotate(log)
    log.write_text("short")
    rotate(log)
    assert not older.exists()
    log.write_text("long enough")
    log.chmod(0o600)
    rotate(log)
    assert older.read_text() == "long enough"
    assert older.stat().st_mode & 0o777 == 0o600
    assert not log.exists() or log.stat().st_size == 0


def test_who_keeps_a_log_open_goes_on_at_its_new_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 10)
    log = tmp_path / "postgres.log"
    with log.open("ab", buffering=0) as server:  # as webapp/servers/process.py opens it
        server.write(b"of the year before")
        logs.rotate_appended(log)
        server.write(b"now")
        assert os.fstat(server.fileno()).st_size == 3
    assert log.read_bytes() == b"now"
