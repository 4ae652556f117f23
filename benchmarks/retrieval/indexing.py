"""How fast documents become passages, and how long a chat waits for its first word meanwhile.

PDFs of two pages each, with the text of XQuAD's articles, go through a real site: upload, Celery,
parser, vectors, index. Beside it one person asks the built-in model, again and again, first while
nothing else is done, then while everything is indexed.
"""

import json
import statistics
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.table import Row
from tests.chat.reader import Reader
from tests.retrieval.pdfs import PdfPage, make_pdf
from tests.sites import Site

_DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "xquad" / "xquad.en.json"
_PAGE_CHARS = 3_000
_NUM_PAGES = 2
_NUM_IDLE = 20


def measure(num_documents: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as folder, Site(Path(folder)) as site:
        site.set_up().close()
        site.execute("UPDATE webapp_tier SET requests_per_minute = NULL, tokens_per_day = NULL")
        reader = Reader.signed_up(site, "asker")
        with closing(reader.client), reader:
            reader.client.get("/")
            reader.client.headers["X-CSRFToken"] = reader.client.cookies["vitrine_csrf"]
            return _measure(reader, num_documents)


def _measure(reader: Reader, num_documents: int) -> list[Row]:
    reader.client.timeout = 60
    collection = reader.client.post("/api/collections", json={"name": "Bench"}).json()["id"]
    _upload(reader.client, collection, "warm.pdf", _pdf("A warm start."))
    while _num_waiting(reader.client, collection):
        _ask(reader)
    idle_s = [_ask(reader) for _ in range(_NUM_IDLE)]
    began_s = time.monotonic()
    for number, text in zip(range(num_documents), _texts(), strict=False):
        _upload(reader.client, collection, f"{number}.pdf", _pdf(f"Document {number}.\n\n{text}"))
    uploaded_s = time.monotonic() - began_s
    busy_s = []
    while _num_waiting(reader.client, collection):
        busy_s.append(_ask(reader))
    took_s = time.monotonic() - began_s
    num_chunks = reader.client.get(f"/api/collections/{collection}").json()["num_chunks"]
    idle_ms, busy_ms = (statistics.median(times) * 1e3 for times in (idle_s, busy_s or [0.0]))
    return [
        {
            "documents": num_documents,
            "uploads s": uploaded_s,
            "all found s": took_s,
            "pages/s": num_documents * _NUM_PAGES / took_s,
            "chunks/s": num_chunks / took_s,
            "TTFT ms idle": idle_ms,
            "TTFT ms while indexing": busy_ms,
            "ratio": busy_ms / idle_ms,
            "p95 ratio": _p95(busy_s) / _p95(idle_s) if busy_s else 0.0,
            "asked": len(busy_s),
        }
    ]


def _ask(reader: Reader) -> float:
    """Seconds from sending a question to the first text of its answer."""
    began_s = time.monotonic()
    accepted = reader.send("Hello! How are you?", model="vitrine-small")
    run = accepted["run"]
    while not reader.text(run):
        reader.hear()
    took_s = time.monotonic() - began_s
    reader.hear_end(run)
    reader.frames.clear()
    return took_s


def _upload(client: httpx2.Client, collection: str, name: str, data: bytes) -> None:
    path = f"/api/collections/{collection}/documents"
    headers = {"Content-Type": "application/octet-stream"}
    client.post(path, params={"name": name}, content=data, headers=headers).raise_for_status()


def _num_waiting(client: httpx2.Client, collection: str) -> int:
    with client.stream("GET", f"/api/collections/{collection}/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                return len(json.loads(line[6:])["documents"])
            if line.startswith(":"):
                return 0
    return 0


def _texts() -> Iterator[str]:
    """Two pages each, again and again."""
    articles: Any = json.loads(_DATA.read_text())["data"]
    words = " ".join(p["context"] for article in articles for p in article["paragraphs"])
    size, at = _PAGE_CHARS * _NUM_PAGES, 0
    while True:
        yield words[at : at + size]
        at = (at + size) % (len(words) - size)


def _pdf(text: str) -> bytes:
    plain = text.encode("cp1252", "replace").decode("cp1252")
    pages = []
    for at in range(0, max(1, len(plain)), _PAGE_CHARS):
        lines = textwrap.wrap(plain[at : at + _PAGE_CHARS], 95)
        places = [(50.0, 740.0 - 14 * n, 10.0, line) for n, line in enumerate(lines)]
        pages.append(PdfPage(places))
    return make_pdf(pages)


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]
