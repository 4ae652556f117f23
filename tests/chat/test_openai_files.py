"""/v1/files: what OpenAI's client keeps comes back as it was, and nobody else ever sees it."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx2
import openai
import pytest

from tests.chat.api_caller import Caller
from tests.chat.test_limits import a_key
from tests.openai_description import check, needs_description
from tests.sites import Site, SiteMaker

pytestmark = needs_description

BOUNDARY = "XXboundaryXX"
FEATURES = ["api_keys", "files"]


def a_client(site: Site, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0)


def on_disk(site: Site) -> set[str]:
    folder = site.data_dir / "files"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.fixture
def others(chat_site: Site, strangers_key: str) -> Iterator[openai.OpenAI]:
    with a_client(chat_site, strangers_key) as client:
        yield client


def test_a_file_comes_back_as_it_was(client: openai.OpenAI, chat_site: Site) -> None:
    content = bytes(range(256)) * 1000
    before = on_disk(chat_site)
    file = client.files.create(file=("späť.bin", content), purpose="user_data")
    check(file.to_dict(), "OpenAIFile")
    assert (file.filename, file.bytes, file.purpose) == ("späť.bin", len(content), "user_data")
    assert file.expires_at is None
    assert client.files.retrieve(file.id) == file
    assert client.files.content(file.id).content == content
    assert on_disk(chat_site) - before == {file.id.removeprefix("file-")}
    gone = client.files.delete(file.id)
    check(gone.to_dict(), "DeleteFileResponse")
    assert on_disk(chat_site) == before
    for look in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            look(file.id)


def test_what_is_read_is_never_shown_as_a_page(client: openai.OpenAI) -> None:
    page = b"<script>alert(1)</script>"
    file = client.files.create(file=("page.html", page, "text/html"), purpose="user_data")
    headers = client.files.with_raw_response.content(file.id).headers
    assert headers["content-type"] == "application/octet-stream"
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"


def test_lists_are_told_in_pages(chat_site: Site) -> None:
    key = a_key(chat_site, features=FEATURES)
    with a_client(chat_site, key) as client:
        empty = client.files.list()
        check(empty.to_dict(), "ListFilesResponse")
        ids = [client.files.create(file=(f"{n}", b"x"), purpose="user_data").id for n in range(4)]
        other = client.files.create(file=("r.jsonl", b"x"), purpose="batch")
        assert other.expires_at is not None
        assert other.expires_at - other.created_at == pytest.approx(30 * 86400, abs=2)
        assert [f.id for f in client.files.list(purpose="user_data", order="asc")] == ids
        page = client.files.list(purpose="user_data", limit=2)
        check(page.to_dict(), "ListFilesResponse")
        assert page.has_more
        assert [f.id for f in page.data] == ids[:1:-1]
        rest = client.files.list(purpose="user_data", limit=2, after=page.data[-1].id)
        assert [f.id for f in rest.data] == ids[1::-1]
        assert not rest.has_more
        for wrong in ({"limit": 0}, {"after": "nonsense"}, {"order": "up"}):
            with pytest.raises(openai.BadRequestError):
                client.files.list(extra_query=wrong)


def test_an_expiry_can_be_asked_for(client: openai.OpenAI) -> None:
    file = client.files.create(
        file=("x", b"x"),
        purpose="user_data",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert file.expires_at is not None
    assert file.expires_at - file.created_at == pytest.approx(3600, abs=2)
    for seconds in (3599, 2_592_001, "soon", "٣٦٠٠"):
        with pytest.raises(openai.BadRequestError) as caught:
            client.files.create(
                file=("x", b"x"),
                purpose="user_data",
                expires_after={"anchor": "created_at", "seconds": seconds},  # type: ignore[typeddict-item]
            )
        assert caught.value.param == "expires_after"


def test_another_users_file_is_as_missing_as_none(
    client: openai.OpenAI, others: openai.OpenAI
) -> None:
    file = client.files.create(file=("mine", b"secret"), purpose="batch")
    for look in (others.files.retrieve, others.files.content, others.files.delete):
        with pytest.raises(openai.NotFoundError) as caught:
            look(file.id)
        with pytest.raises(openai.NotFoundError) as unknown:
            look(f"file-{'0' * 32}")
        known, missing = (json.dumps(error.value.body) for error in (caught, unknown))
        assert known.replace(file.id, "") == missing.replace(f"file-{'0' * 32}", "")
    assert file.id not in [f.id for f in others.files.list()]
    with pytest.raises(openai.NotFoundError):
        others.batches.create(
            input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h"
        )
    assert client.files.content(file.id).content == b"secret"


# --- what is wrong leaves nothing -----------------------------------------------------------------


def _part(name: str, content: str, more: str = "") -> str:
    return (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{content}\r\n'
    )


PURPOSE = _part("purpose", "user_data")
FILE = _part("file", "hello", '; filename="a.txt"')
END = f"--{BOUNDARY}--\r\n"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"


@pytest.mark.parametrize(
    ("kind", "body", "status", "param"),
    [
        ("application/json", '{"purpose": "batch"}', 415, None),
        ("text/plain", "hello", 415, None),
        ("multipart/form-data", PURPOSE + FILE + END, 400, None),
        (MULTIPART, "", 400, None),
        (MULTIPART, "nonsense", 400, None),
        (MULTIPART, PURPOSE + END, 400, "file"),
        (MULTIPART, FILE + END, 400, "purpose"),
        (MULTIPART, PURPOSE + _part("file", "hello") + END, 400, "file"),
        (MULTIPART, PURPOSE + _part("file", "", '; filename="a.txt"') + END, 400, "file"),
        (MULTIPART, PURPOSE + _part("other", "x", '; filename="a.txt"') + END, 400, "file"),
        (MULTIPART, PURPOSE + FILE + FILE + END, 400, "file"),
        (MULTIPART, PURPOSE + _part("file", "x", '; filename="../"') + END, 400, "file"),
        (MULTIPART, PURPOSE + FILE, 400, None),
        (MULTIPART, PURPOSE + FILE[:-9], 400, None),
        (MULTIPART, _part("purpose", "fine-tune") + FILE + END, 400, "purpose"),
        (MULTIPART, _part("purpose", "batch_output") + FILE + END, 400, "purpose"),
        (MULTIPART, FILE + _part("purpose", "\x00") + END, 400, "purpose"),
        (MULTIPART, PURPOSE + FILE + _part("f", "x") * 1200 + END, 400, None),
    ],
)
def test_a_wrong_body_is_told_and_leaves_nothing(
    caller: Caller, chat_site: Site, kind: str, body: str, status: int, param: str | None
) -> None:
    before = on_disk(chat_site)
    response = caller.post("/files", body, **{"Content-Type": kind})
    assert response.status_code == status, response.text
    assert response.json()["error"]["param"] == param
    assert on_disk(chat_site) == before


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../../../etc/passwd", "passwd"),
        ("C:\\\\windows\\\\system.ini", "system.ini"),
        ("/etc/shadow", "shadow"),
        ("&lt;b&gt;.txt", "<b>.txt"),
        ("x" * 300 + ".txt", "x" * 255),
        ("…\u202egnp.exe", None),
    ],
)
def test_hostile_names_are_names(
    caller: Caller, chat_site: Site, sent: str, kept: str | None
) -> None:
    body = PURPOSE + _part("file", "hello", f'; filename="{sent}"') + END
    response = caller.post("/files", body, **{"Content-Type": MULTIPART})
    assert response.status_code == 200, response.text
    file = response.json()
    assert "/" not in file["filename"]
    assert kept is None or file["filename"] == kept
    assert file["id"].removeprefix("file-") in on_disk(chat_site)
    content = caller.get(f"/files/{file['id']}/content")
    assert content.text == "hello"
    assert "\n" not in content.headers["content-disposition"]
    caller.delete(f"/files/{file['id']}")


@pytest.mark.parametrize("id_", ["x", "file-", "file-1", "file-../../secret", "batch_" + "0" * 32])
def test_nonsense_is_no_file(caller: Caller, id_: str) -> None:
    assert caller.get(f"/files/{id_}").status_code == 404
    assert caller.get(f"/files/{id_}/content").status_code == 404


def test_an_upload_in_chunks_of_unknown_length(caller: Caller) -> None:
    def pieces() -> Iterator[bytes]:
        yield (PURPOSE + FILE)[:50].encode()
        yield ((PURPOSE + FILE)[50:] + END).encode()

    headers = caller.headers | {"Content-Type": MULTIPART}
    response = httpx2.post(f"{caller.url}/files", content=pieces(), headers=headers, timeout=30)
    assert response.status_code == 200, response.text
    assert response.json()["bytes"] == 5


def test_who_leaves_in_the_middle_leaves_nothing(caller: Caller, chat_site: Site) -> None:
    before = on_disk(chat_site)

    def pieces() -> Iterator[bytes]:
        yield (PURPOSE + FILE).encode()
        yield b"x" * 300_000
        raise ConnectionAbortedError

    length = {"Content-Length": "10000000", "Content-Type": MULTIPART}
    with pytest.raises(ConnectionAbortedError):
        httpx2.post(f"{caller.url}/files", content=pieces(), headers=caller.headers | length)
    # The next one through the same door has seen the first one's end.
    assert caller.post("/files", "", **{"Content-Type": MULTIPART}).status_code == 400
    assert on_disk(chat_site) == before


# --- how much -------------------------------------------------------------------------------------


def test_a_tier_says_how_large_a_file_may_be(chat_site: Site) -> None:
    before = on_disk(chat_site)
    with a_client(chat_site, a_key(chat_site, features=FEATURES, upload_mib=1)) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            client.files.create(file=("big", b"x" * (2**20 + 1)), purpose="user_data")
        assert caught.value.status_code == 413
        assert "1 MiB" in caught.value.message
        assert on_disk(chat_site) == before
        client.files.create(file=("right", b"x" * 2**20), purpose="user_data")


def test_a_tier_without_files_has_none(chat_site: Site) -> None:
    with a_client(chat_site, a_key(chat_site, features=["api_keys"])) as client:
        with pytest.raises(openai.PermissionDeniedError):
            client.files.create(file=("x", b"x"), purpose="user_data")
        with pytest.raises(openai.PermissionDeniedError):
            client.batches.create(
                input_file_id="file-x", endpoint="/v1/embeddings", completion_window="24h"
            )


def test_all_files_of_a_user_together_have_a_bound(make_site: SiteMaker) -> None:
    with make_site(VITRINE_FILES_MIB="2") as site:
        site.set_up().close()
        with a_client(site, a_key(site, features=FEATURES)) as client:

            def send(number: int) -> Any:
                try:
                    content = b"x" * (900 * 1024)
                    return client.files.create(file=(f"{number}", content), purpose="user_data").id
                except openai.APIStatusError as error:
                    assert (error.status_code, error.code) == (413, "storage_quota_exceeded")
                    return None

            with ThreadPoolExecutor(6) as pool:
                ids = [id_ for id_ in pool.map(send, range(6)) if id_]
            assert len(ids) == 2
            assert on_disk(site) == {id_.removeprefix("file-") for id_ in ids}
            client.files.delete(ids[0])
            assert send(7)


def test_a_browser_is_sent_to_a_key(chat_site: Site) -> None:
    with closing(chat_site.sign_up("filer")) as visitor:
        visitor.get("/")
        token = visitor.cookies["vitrine_csrf"]
        response = visitor.post(
            "/v1/files",
            data={"purpose": "batch"},
            files={"file": ("x", b"x")},
            headers={"X-CSRFToken": token},
        )
        assert response.status_code == 403
        assert response.json()["error"]["code"] == "api_key_required"


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        (f"multipart/form-data; Boundary={BOUNDARY}", END),
        (f'MULTIPART/Form-Data; BOUNDARY="{BOUNDARY}"', END),
        (MULTIPART, END + "and what follows is no part of it" * 20),
    ],
)
def test_a_body_may_be_written_as_the_rules_allow(caller: Caller, kind: str, end: str) -> None:
    """Source: RFC 2045, section 5.1, and RFC 2046, section 5.1.1."""
    response = caller.post("/files", PURPOSE + FILE + end, **{"Content-Type": kind})
    assert response.status_code == 200, response.text
    caller.delete(f"/files/{response.json()['id']}")


@pytest.mark.parametrize("purpose", ["%00", "%ED%A0%80", "nonsense", "x" * 3000])
def test_no_file_has_a_purpose_that_there_is_not(caller: Caller, purpose: str) -> None:
    response = caller.get(f"/files?purpose={purpose}")
    assert (response.status_code, response.json()["data"]) == (200, [])
