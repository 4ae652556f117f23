"""Commands of manage.py beside and without `serve`."""

import json
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import get_commands

from tests.sites import ROOT, Site, SiteMaker
from webapp.schema import _OWN
from webapp.servers.postgres import Postgres
from webapp.serving.on_demand import _NEED_THE_DATABASE

WITHOUT_DATABASE = {
    *("evalmoderation", "messages", "models", "newkey", "pull", "restore", "serve", "vendor")
}
OURS = sorted(name for name, app in get_commands().items() if app in _OWN)
SHARING = "from webapp.models import User; print('in', flush=True); input(); User.objects.count()"


@pytest.mark.parametrize("name", OURS)
def test_of_each_command_somebody_has_thought_whether_it_needs_the_database(name: str) -> None:
    assert (name in WITHOUT_DATABASE) != (name in _NEED_THE_DATABASE)


@contextmanager
def shell(site: Site) -> Iterator["subprocess.Popen[str]"]:
    """One that looks into the database once it is told to."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", SHARING],
        env=site.whole_environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "in\n"
            yield process
        finally:
            process.kill()


def test_commands_share_the_servers_until_the_last_has_ended(make_site: SiteMaker) -> None:
    site = make_site()
    with shell(site) as first, shell(site) as second:
        assert first.stdin
        first.stdin.write("\n")
        first.stdin.flush()
        time.sleep(1.5)  # longer than the servers take to end
        assert first.poll() is None
        _, errors = second.communicate("\n", timeout=60)
        assert second.returncode == 0, errors
        _, errors = first.communicate(timeout=60)
        assert first.returncode == 0, errors
        assert "waiting for them" in errors
    assert not (site.data_dir / "postgres/postmaster.pid").exists()


def test_commands_that_start_at_once_all_work(make_site: SiteMaker, tmp_path: Path) -> None:
    site = make_site()
    commands = [["invite"], ["exportlabels", str(tmp_path / "labels")], ["invite"]]
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda command: site.manage(*command), commands))
    assert [(one.returncode, one.stderr) for one in done if one.returncode] == []
    assert (tmp_path / "labels").read_text() == ""


def test_commands_of_an_older_version_touch_nothing(make_site: SiteMaker, tmp_path: Path) -> None:
    site = make_site()
    with database(site) as connection:
        connection.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('chat', '0999_later', now())"
        )
    told = site.manage("invite")
    assert told.returncode == 1
    assert "newer version of Vitrine (chat 0999_later)" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_backup_before_an_upgrade_leads_back(make_site: SiteMaker, tmp_path: Path) -> None:
    """The new code is there already, and has not been started."""
    site, file = make_site(), tmp_path / "site.tar"
    undone = "UPDATE django_migrations SET name = '0001_by_another_name' WHERE name = %s"
    newest = max(path.stem for path in (ROOT / "moderation/migrations").glob("0*.py"))
    with database(site) as connection:
        connection.execute(undone, [newest])
    done = site.manage("backup", str(file))
    assert done.returncode == 0, done.stderr
    with tarfile.open(file) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest
        migrations = json.load(manifest)["migrations"]
    assert ["moderation", newest] not in migrations
    with database(site) as connection:
        found = connection.execute("SELECT 1 FROM django_migrations WHERE name = %s", [newest])
        assert not found.fetchall()


@contextmanager
def database(site: Site) -> Iterator["psycopg.Connection[Any]"]:
    """While nothing is served."""
    postgres = Postgres(site.data_dir)
    postgres.start()
    try:
        postgres.wait_ready()
        with psycopg.connect(postgres.conninfo()) as connection:
            yield connection
    finally:
        postgres.stop()


def test_what_needs_a_running_site_says_so(make_site: SiteMaker) -> None:
    told = make_site().manage("remove_stale_contenttypes")
    assert told.returncode == 1
    assert told.stderr.splitlines()[-1].endswith("Start Vitrine first (make run).")
    assert "Traceback" not in told.stderr


def test_a_wrong_variable_stops_a_command_with_one_sentence(tmp_path: Path) -> None:
    wrong = {**os.environ, "DATA_DIR": str(tmp_path), "PORT": "many"}
    command = [sys.executable, str(ROOT / "manage.py"), "serve"]
    done = subprocess.run(command, env=wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"PORT must be a whole number[^\n]+\n", done.stderr)
