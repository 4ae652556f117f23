"""How long the pages take that read from a big store: the sidebar, a chat, and search.

The requests come over HTTP, one after the other, from the session of the person with a fifth of all
chats and from that of one with as many as the others have. Searched for are words that are in every
message, in some and in hardly any, two words together, a phrase, the beginning of a word, nothing
that there is, and the same with filters.
"""

import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import psycopg

from benchmarks.chat.fill import MESSAGES_PER_CHAT, WORDS
from benchmarks.table import Row
from tests.sites import ROOT, Site
from webapp.servers.postgres import Postgres

NUM_PEOPLE = 100
NUM_PROCESSES = 2
_QUERIES = {
    "search: everywhere": lambda draw: WORDS[draw.randrange(5)],
    "search: common": lambda draw: WORDS[draw.randrange(50, 500)],
    "search: rare": lambda draw: WORDS[draw.randrange(5_000, 20_000)],
    "search: two words": lambda draw: f"{WORDS[draw.randrange(50)]} {WORDS[draw.randrange(500)]}",
    "search: phrase": lambda draw: f'"{WORDS[draw.randrange(5)]} {WORDS[draw.randrange(50)]}"',
    "search: beginning": lambda draw: WORDS[draw.randrange(500, 5_000)][:2],
    "search: nowhere": lambda draw: f"zz{draw.randrange(10_000)}",
    "search: with filters": lambda draw: f"tag:work before:2025-06-01 {WORDS[draw.randrange(500)]}",
}


def measure(num_messages: int, num_requests: int) -> list[Row]:
    """Rows of p50 and p95 in milliseconds, for each kind of request and person."""
    num_chats = num_messages // MESSAGES_PER_CHAT
    with (
        tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder,
        Site(Path(folder), None, VITRINE_PRELOAD="false") as site,
    ):
        site.set_up().close()
        emails = _make_people(site)
        started_s = time.monotonic()
        _fill(site, num_chats, emails)
        print(
            f"{num_chats:,} chats of {num_messages:,} messages: {time.monotonic() - started_s:.0f} s"
        )
        size = _settle(site)
        print(f"{size / 2**30:.1f} GiB on disk")
        rows = []
        for who, email in (("a fifth of all", emails[0]), ("as others", emails[1])):
            client = site.sign_in(email)
            rows += [{"who": who, **row} for row in _requests(client, num_requests)]
            client.close()
        return rows


def _make_people(site: Site) -> list[str]:
    """Two who sign in, and those who only own chats."""
    for name in ("first", "second"):
        site.sign_up(name).close()
    code = (
        "from webapp.models import User\n"
        f"for n in range({NUM_PEOPLE - 2}): User.objects.create_user(f'person{{n}}@example.org')"
    )
    done = site.manage("shell", "-c", code)
    assert done.returncode == 0, done.stderr
    others = [f"person{n}@example.org" for n in range(NUM_PEOPLE - 2)]
    return ["first@example.org", "second@example.org", *others]


def _fill(site: Site, num_chats: int, emails: list[str]) -> None:
    bounds = [num_chats * n // NUM_PROCESSES for n in range(NUM_PROCESSES + 1)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.chat.fill", str(first), str(behind), *emails],
            env={**os.environ, "DATA_DIR": str(site.data_dir)},
            cwd=ROOT,
        )
        for first, behind in itertools.pairwise(bounds)
    ]
    for process in processes:
        if process.wait():
            raise RuntimeError("the chats could not be written")


def _settle(site: Site) -> int:
    """What autovacuum would do in time. Returns the size of the database in bytes."""
    with psycopg.connect(Postgres(site.data_dir).conninfo(), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])


def _requests(client: httpx2.Client, num_requests: int) -> list[Row]:
    draw = random.Random(1)
    listed = client.get("/api/conversations").json()["items"]
    cursors = _walk(client)
    kinds: dict[str, Callable[[], httpx2.Response]] = {
        "sidebar": lambda: client.get("/api/sidebar"),
        "list: some page": lambda: client.get(
            "/api/conversations", params={"cursor": draw.choice(cursors)}
        ),
        "open a chat": lambda: client.get(f"/api/conversations/{draw.choice(listed)['id']}"),
        "page of a chat": lambda: client.get(f"/c/{draw.choice(listed)['id']}"),
    }
    for name, query in _QUERIES.items():
        kinds[name] = lambda query=query: client.get("/api/search", params={"q": query(draw)})
    return [_timed(name, ask, num_requests) for name, ask in kinds.items()]


def _walk(client: httpx2.Client) -> list[str]:
    """Cursors of pages, the newest first."""
    cursors = [""]
    while len(cursors) < 30:
        following = client.get("/api/conversations", params={"cursor": cursors[-1]}).json()["next"]
        if following is None:
            break
        cursors.append(following)
    return cursors


def _timed(name: str, ask: Callable[[], httpx2.Response], num_requests: int) -> Row:
    ask()
    times_ms = []
    for _ in range(num_requests):
        started_s = time.perf_counter()
        response = ask()
        times_ms.append((time.perf_counter() - started_s) * 1e3)
        assert response.status_code == 200, response.text
    p95_ms = statistics.quantiles(times_ms, n=20)[-1]
    return {"request": name, "p50 ms": statistics.median(times_ms), "p95 ms": p95_ms}
