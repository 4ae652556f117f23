"""Documents under /api: brought, read, found, shared, gone; who has no right tries every door."""

import json
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.retrieval.web_server import ok, web_server
from tests.sites import PASSWORD, Site, SiteMaker, email_of

TEXT = "# Birds\n\nThe zanzibar canary weighs ninety grams.\n\n# Fish\n\nThe pike is long.\n"


@contextmanager
def visiting(site: Site, name: str) -> Iterator[httpx2.Client]:
    with closing(site.sign_up(name)) as visitor:
        visitor.get("/")
        visitor.headers["X-CSRFToken"] = visitor.cookies["vitrine_csrf"]
        yield visitor


@pytest.fixture(scope="module")
def alice(chat_site: Site) -> Iterator[httpx2.Client]:
    with visiting(chat_site, "doc-alice") as visitor:
        yield visitor


@pytest.fixture(scope="module")
def bob(chat_site: Site) -> Iterator[httpx2.Client]:
    with visiting(chat_site, "doc-bob") as visitor:
        yield visitor


@pytest.fixture(scope="module")
def charlie(chat_site: Site) -> Iterator[httpx2.Client]:
    with visiting(chat_site, "doc-charlie") as visitor:
        yield visitor


def a_collection(visitor: httpx2.Client, name: str = "Notes") -> str:
    response = visitor.post("/api/collections", json={"name": name})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def upload(
    visitor: httpx2.Client,
    collection: str,
    content: bytes | str,
    name: str = "birds.md",
    **more: str,
) -> httpx2.Response:
    return visitor.post(
        f"/api/collections/{collection}/documents",
        params={"name": name, **more},
        content=content,
        headers={"Content-Type": "application/octet-stream"},
    )


def ready(visitor: httpx2.Client, document: str, state: str = "ready") -> dict[str, Any]:
    end_s = time.monotonic() + 150
    while time.monotonic() < end_s:
        value: dict[str, Any] = visitor.get(f"/api/documents/{document}").json()
        if value["version"]["state"] in ("ready", "failed"):
            assert value["version"]["state"] == state, value
            return value
        time.sleep(0.1)
    raise TimeoutError(value)


def hits(visitor: httpx2.Client, query: str, **more: Any) -> list[dict[str, Any]]:
    response = visitor.post("/api/documents/search", json={"query": query, **more})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["hits"]
    return found


def on_disk(site: Site) -> set[str]:
    folder: Path = site.data_dir / "documents"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_a_document_is_brought_found_replaced_and_gone(
    alice: httpx2.Client, chat_site: Site
) -> None:
    before = on_disk(chat_site)
    collection = a_collection(alice)
    brought = upload(alice, collection, TEXT)
    assert brought.status_code == 201
    document = brought.json()["id"]
    value = ready(alice, document)
    assert (value["name"], value["version"]["number"]) == ("birds.md", 1)
    assert value["version"]["num_chunks"] == value["version"]["num_embedded"] > 0
    best = hits(alice, "how heavy is the canary?", collections=[collection])[0]
    assert best["document"] == document
    assert TEXT[best["start"] : best["end"]] == best["text"]
    assert "ninety grams" in best["text"]
    # by meaning alone: no word of it is in the text
    assert hits(alice, "animals living underwater", collections=[collection])[0]["vector_rank"] == 1
    again = upload(alice, collection, TEXT).json()
    assert (again["id"], again["version"]["number"]) == (document, 1), "the same file again"
    other = upload(alice, collection, TEXT.replace("ninety", "eighty")).json()
    assert (other["id"], other["version"]["number"]) == (document, 2)
    ready(alice, document)
    found = hits(alice, "canary", collections=[collection])
    assert ["eighty" in hit["text"] for hit in found if "canary" in hit["text"]] == [True]
    assert len(on_disk(chat_site) - before) == 2
    assert alice.delete(f"/api/documents/{document}").status_code == 204
    assert hits(alice, "canary", collections=[collection]) == []
    assert on_disk(chat_site) == before
    assert alice.get(f"/api/documents/{document}").status_code == 404


def test_files_of_one_name_at_once_are_versions_of_one_document(
    alice: httpx2.Client, bob: httpx2.Client
) -> None:
    collection = a_collection(alice)
    whom = {"email": email_of("doc-bob"), "may_write": True}
    alice.post(f"/api/collections/{collection}/accesses", json=whom)

    def bring(number: int) -> str:
        visitor = bob if number % 2 else alice
        return str(upload(visitor, collection, f"text {number}", "same.txt").json()["id"])

    with ThreadPoolExecutor(6) as pool:
        ids = set(pool.map(bring, range(6)))
    assert len(ids) == 1
    versions = alice.get(f"/api/documents/{ids.pop()}/versions").json()["versions"]
    assert [version["number"] for version in versions] == [6, 5, 4, 3, 2, 1]


def test_who_has_no_right_finds_nothing_and_opens_nothing(
    alice: httpx2.Client, bob: httpx2.Client, charlie: httpx2.Client
) -> None:
    collection = a_collection(alice, "Secrets")
    document = upload(alice, collection, "The canary word is xylophonist.").json()["id"]
    ready(alice, document)
    doors = [
        ("GET", f"/api/collections/{collection}"),
        ("PATCH", f"/api/collections/{collection}"),
        ("DELETE", f"/api/collections/{collection}"),
        ("GET", f"/api/collections/{collection}/documents"),
        ("POST", f"/api/collections/{collection}/documents?name=a.txt"),
        ("GET", f"/api/collections/{collection}/accesses"),
        ("POST", f"/api/collections/{collection}/accesses"),
        ("DELETE", f"/api/collections/{collection}/accesses/1"),
        ("GET", f"/api/collections/{collection}/events"),
        ("GET", f"/api/documents/{document}"),
        ("PATCH", f"/api/documents/{document}"),
        ("DELETE", f"/api/documents/{document}"),
        ("GET", f"/api/documents/{document}/versions"),
        ("POST", f"/api/documents/{document}/versions"),
        ("POST", f"/api/documents/{document}/retry"),
    ]

    def tried(visitor: httpx2.Client, method: str, path: str) -> int:
        body = {"email": email_of("doc-charlie")} if path.endswith("/accesses") else {"name": "x"}
        return visitor.request(method, path, json=body if method != "GET" else None).status_code

    for method, path in doors:
        assert tried(charlie, method, path) == 404, (method, path)
    assert hits(charlie, "canary word xylophonist") == []
    assert hits(charlie, "canary", collections=[collection], documents=[document]) == []
    assert "xylophonist" not in charlie.get("/api/collections").text

    def share(**whom: Any) -> httpx2.Response:
        return alice.post(f"/api/collections/{collection}/accesses", json=whom)

    access = share(email=email_of("doc-bob")).json()["id"]
    assert hits(bob, "canary word")[0]["text"] == "The canary word is xylophonist."
    for method, path in doors:
        if method == "GET" and "events" not in path and "accesses" not in path:
            assert tried(bob, method, path) == 200, path
        elif method != "GET":
            assert tried(bob, method, path) == 403, path
    assert upload(bob, collection, "planted").status_code == 403
    share(email=email_of("doc-bob"), may_write=True)
    assert upload(bob, collection, "brought by Bob", "bob.txt").status_code == 201
    assert bob.delete(f"/api/collections/{collection}").status_code == 403
    assert alice.delete(f"/api/collections/{collection}/accesses/{access}").status_code == 204
    seen = [hit["text"] for hit in hits(bob, "canary word xylophonist")]
    assert not any("xylophonist" in text for text in seen), "it ends at once"
    assert bob.get(f"/api/documents/{document}").status_code == 404
    assert share(everybody=True).status_code == 403
    for nobody in ("nobody@example.org", "\0"):
        assert share(email=nobody).json()["error"]["param"] == "email"
    assert share(group=99999).status_code == 404
    assert share().status_code == 400


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [("a.txt", b"", 400), ("", b"text", 400), ("..", b"text", 400), ("a\x00.txt", b"text", 400)],
)
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(
    alice: httpx2.Client, chat_site: Site, name: str, content: bytes, status: int
) -> None:
    before = on_disk(chat_site)
    collection = a_collection(alice)
    assert upload(alice, collection, content, name).status_code == status
    assert on_disk(chat_site) == before


def test_a_file_that_cannot_be_read_says_why_and_is_tried_again(alice: httpx2.Client) -> None:
    collection = a_collection(alice)
    document = upload(alice, collection, b"%PDF-1.7 nonsense", "broken.pdf").json()["id"]
    good = upload(alice, collection, "fine", "fine.txt").json()["id"]
    failed = ready(alice, document, "failed")
    assert failed["version"]["reason"].endswith(".")
    assert failed["live_version"] is None
    ready(alice, good)
    assert alice.post(f"/api/documents/{document}/retry").status_code == 200
    ready(alice, document, "failed")
    assert alice.post(f"/api/documents/{good}/retry").status_code == 409


def test_a_file_larger_than_the_plan_takes_is_refused(
    alice: httpx2.Client, chat_site: Site
) -> None:
    before = on_disk(chat_site)
    collection = a_collection(alice)
    response = upload(alice, collection, b"a" * (33 * 2**20), "large.txt")
    assert response.status_code == 413
    assert "32 MiB" in response.json()["error"]["message"]
    assert on_disk(chat_site) == before


def test_folders_names_tags_and_pages_of_the_list(alice: httpx2.Client) -> None:
    collection = a_collection(alice)
    for n in range(5):
        response = upload(alice, collection, f"text {n}", f"{n}.txt", path=f"a/../b/{n}.txt")
        assert response.json()["name"] == f"a › b › {n}.txt"
    path = f"/api/collections/{collection}/documents"
    first = alice.get(path, params={"limit": 3}).json()
    rest = alice.get(path, params={"after": first["documents"][-1]["id"]}).json()
    assert (first["has_more"], rest["has_more"]) == (True, False)
    names = [row["name"][-5:] for row in first["documents"] + rest["documents"]]
    assert names == ["4.txt", "3.txt", "2.txt", "1.txt", "0.txt"]
    last = first["documents"][-1]["id"]
    assert alice.delete(f"/api/documents/{last}").is_success
    again = alice.get(path, params={"after": last}).json()["documents"]
    assert [row["id"] for row in again] == [row["id"] for row in rest["documents"]]
    found = alice.get(path, params={"q": "3.TX"}).json()["documents"]
    assert len(found) == 1
    document = found[0]["id"]
    ready(alice, document)
    changed = alice.patch(f"/api/documents/{document}", json={"tags": ["x", " x", "y z"]})
    assert changed.json()["tags"] == ["x", "y z"]
    assert len(hits(alice, "text", collections=[collection], tags=["x"])) == 1
    assert alice.patch(f"/api/documents/{document}", json={"name": " "}).status_code == 400
    assert alice.get(path, params={"after": "nonsense"}).status_code == 404


def test_a_file_attached_to_a_message_goes_to_ones_own_place(
    alice: httpx2.Client, bob: httpx2.Client
) -> None:
    def attach(text: str) -> Any:
        path = "/api/documents/attach"
        return alice.post(path, params={"name": "note.txt"}, content=text).json()

    first, second = attach("one zebrafinch"), attach("another zebrafinch")
    assert first["id"] != second["id"], "of one name, and yet two"
    assert first["collection"] == second["collection"]
    own = alice.get(f"/api/collections/{first['collection']}").json()
    assert own["is_for_chats"]
    names = [
        row["id"] for row in alice.get("/api/documents", params={"q": "note"}).json()["documents"]
    ]
    assert names == [second["id"], first["id"]]
    assert bob.get("/api/documents", params={"q": "note"}).json() == {"documents": []}
    ready(alice, second["id"])


def test_files_of_the_machine_are_ingested_once(
    alice: httpx2.Client, chat_site: Site, tmp_path: Path
) -> None:
    (tmp_path / "books" / ".git").mkdir(parents=True)
    (tmp_path / "books" / "a.md").write_text("The wombat digs.")
    (tmp_path / "books" / ".git" / "config").write_text("hidden")
    (tmp_path / "single.txt").write_text("The heron waits.")

    def ingest(*more: str) -> Any:
        paths = [str(tmp_path / "books"), str(tmp_path / "single.txt")]
        owner = ["--owner", email_of("doc-alice"), "--collection", "Ingested"]
        return chat_site.manage("ingest", *paths, *owner, *more)

    assert "2 new or changed files" in ingest().stdout
    assert "0 new or changed files" in ingest().stdout
    (tmp_path / "books" / "a.md").write_text("The wombat sleeps.")
    assert "1 new or changed files" in ingest().stdout
    found = alice.get("/api/documents", params={"q": "a.md"}).json()["documents"]
    (wombat,) = [row for row in found if row["version"]["number"] == 2]
    ready(alice, wombat["id"])
    best = hits(alice, "what does the wombat do?", documents=[wombat["id"]])
    assert [hit["text"] for hit in best] == ["The wombat sleeps."]
    assert chat_site.manage("ingest", "/nonsense", "--owner", "x@example.org").returncode == 1


def test_files_of_several_folders_are_ingested_as_documents_of_their_own(
    alice: httpx2.Client, chat_site: Site, tmp_path: Path
) -> None:
    for folder in ("north", "south", "old/north"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "readme.md").write_text(f"The ibis of {folder} wades.")
    (tmp_path / "south" / "map.md").write_text("The ibis has a map.")
    alice.post("/api/documents/attach", params={"name": "a.txt"}, content=b"The ibis sits.")

    def ingest(*folders: str) -> Any:
        paths = [str(tmp_path / folder) for folder in folders]
        owner = ["--owner", email_of("doc-alice"), "--collection", "Files of chats"]
        return chat_site.manage("ingest", *paths, *owner)

    given = ("north", "south", "north", "north/readme.md")
    assert "3 new or changed files" in ingest(*given).stdout
    assert "0 new or changed files" in ingest(*given).stdout
    collections = alice.get("/api/collections").json()["collections"]
    for_chats, own = sorted(
        (row for row in collections if row["name"] == "Files of chats"),
        key=lambda row: bool(row["is_for_chats"]),
        reverse=True,
    )
    assert (for_chats["is_for_chats"], own["is_for_chats"]) == (True, False)
    found = alice.get(f"/api/collections/{own['id']}/documents").json()["documents"]
    names = {row["name"] for row in found}
    assert names == {"north › readme.md", "south › readme.md", "map.md"}
    refused = ingest("north", "old/north")
    assert refused.returncode == 1
    assert "would be one document" in refused.stderr


def test_what_an_address_serves_becomes_a_document(make_site: SiteMaker) -> None:
    pages = [b"<html><title>Emus</title><body><p>The emu runs fast.</p></body></html>"]
    kind = "Content-Type: text/html"
    with (
        web_server(lambda _: ok(pages[0], kind)) as server,
        make_site(VITRINE_EGRESS_ALLOW=f"127.0.0.1:{server.port}") as site,
    ):
        address = f"http://127.0.0.1:{server.port}/emus.html"
        site.set_up().close()
        with visiting(site, "linker") as visitor:
            collection = a_collection(visitor)

            def add(url: str) -> httpx2.Response:
                return visitor.post(f"/api/collections/{collection}/links", json={"url": url})

            response = add(address)
            assert response.status_code == 201, response.text
            document = response.json()["id"]
            assert response.json()["source_url"] == address
            ready(visitor, document)
            assert hits(visitor, "emu")[0]["document"] == document
            refreshed = visitor.post(f"/api/documents/{document}/refresh").json()
            assert refreshed["version"]["number"] == 1, "it is the same"
            pages[0] = b"<html><body><p>The emu walks.</p></body></html>"
            refreshed = visitor.post(f"/api/documents/{document}/refresh").json()
            assert refreshed["version"]["number"] == 2
            for url in ("http://169.254.169.254/latest", "file:///etc/passwd", "http://[::1]/"):
                refused = add(url)
                assert refused.status_code == 400
                assert refused.json()["error"]["param"] == "url"
            ready(visitor, document)


def test_documents_are_taken_along_and_go_with_the_account(chat_site: Site) -> None:
    before = on_disk(chat_site)
    with visiting(chat_site, "doc-leaver") as visitor:
        collection = a_collection(visitor, "Mine")
        document = upload(visitor, collection, "The okapi hides.", "okapi.txt").json()["id"]
        ready(visitor, document)
        with zipfile.ZipFile(BytesIO(visitor.get("/settings/export").content)) as archive:
            (name,) = [name for name in archive.namelist() if name.startswith("documents/")]
            assert archive.read(name) == b"The okapi hides."
            assert json.loads(archive.read("collections.json"))[0]["name"] == "Mine"
            assert json.loads(archive.read("documents.json"))[0]["versions"][0]["state"] == "ready"
        leave(visitor, email_of("doc-leaver"))
    assert on_disk(chat_site) == before


def leave(visitor: httpx2.Client, email: str) -> None:
    token = visitor.cookies["vitrine_csrf"]
    visitor.post(
        "/accounts/reauthenticate/", data={"password": PASSWORD, "csrfmiddlewaretoken": token}
    )
    form = {"email": email, "csrfmiddlewaretoken": visitor.cookies["vitrine_csrf"]}
    assert visitor.post("/settings/delete-account", data=form).status_code in (200, 302)


def test_progress_is_pushed(alice: httpx2.Client) -> None:
    collection = a_collection(alice)
    seen = []
    with alice.stream("GET", f"/api/collections/{collection}/events") as stream:
        upload(alice, collection, TEXT * 500)
        for line in stream.iter_lines():
            if '"state"' in line:
                seen.append(line.partition('"state":"')[2].partition('"')[0])
                if seen[-1] == "ready":
                    break
    assert len(seen) > 2
    assert seen[-2] == "embedding"


def test_a_collection_goes_with_all_its_files(alice: httpx2.Client, chat_site: Site) -> None:
    before = on_disk(chat_site)
    collection = a_collection(alice)
    for n in range(3):
        ready(alice, upload(alice, collection, f"kookaburra {n}", f"{n}.txt").json()["id"])
    shown = alice.get(f"/api/collections/{collection}").json()
    assert (shown["num_documents"], shown["num_chunks"]) == (3, 3)
    assert alice.delete(f"/api/collections/{collection}").status_code == 204
    assert on_disk(chat_site) == before
    assert not any("kookaburra" in hit["text"] for hit in hits(alice, "kookaburra"))
