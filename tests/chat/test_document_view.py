"""The viewer's doors: who may read a document sees all of it, Charlie the same 404 as for nothing."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from PIL import Image

from retrieval import document_files
from retrieval.models import Access, Collection, Document, Version, VersionState
from retrieval.parsing import Limits, parse
from tests.retrieval.pdfs import PdfPage, make_pdf
from webapp.tenancy import as_system

if TYPE_CHECKING:
    from webapp.models import User

pytestmark = pytest.mark.django_db(transaction=True)

Keep = Callable[..., Document]
CANARY = "the canary 4b1e sings of glass"
LINES = [(72.0, 700.0, 12.0, "A page of words"), (72.0, 680.0, 12.0, CANARY)]


@pytest.fixture
def keep(alice: "User") -> Keep:
    """keep(name, data) is a document of Alice's, read as a worker reads it."""

    def keep(name: str, data: bytes, document: Document | None = None, **fields: Any) -> Document:
        with as_system():
            if document is None:
                collection, _ = Collection.objects.get_or_create(owner=alice, name="Notes")
                document = Document.objects.create(
                    collection=collection, name=name, created_by=alice
                )
            version = Version(
                document=document,
                collection=document.collection,
                number=document.versions.count() + 1,
                size_bytes=len(data),
                state=VersionState.READY,
            )
            path = document_files.path_of(version.pk)
            path.write_bytes(data)
            if not fields:
                parsed = parse(path, name=name, limits=Limits())
                version.text, document.media_type = parsed.text, parsed.media_type
                version.pages = [
                    [page.start, page.end, page.label, page.width_pt, page.height_pt]
                    for page in parsed.pages
                ]
            for field, value in fields.items():
                setattr(version, field, value)
            version.save()
            if version.state == VersionState.READY:
                document.live_version = version.pk
            document.save()
        return document

    return keep


@pytest.fixture
def pdf(keep: Keep) -> Document:
    return keep("glass.pdf", make_pdf([PdfPage(), PdfPage(LINES)]))


def signed_in(user: "User") -> Client:
    client = Client()
    client.force_login(user)
    return client


def share(document: Document, user: "User", **fields: Any) -> None:
    with as_system():
        collection = document.collection
        Access.objects.create(
            collection=collection, owner_id=collection.owner_id, user=user, **fields
        )


def doors(document_id: object, collection_id: object) -> list[str]:
    base = f"/api/documents/{document_id}"
    return [
        f"/documents/{document_id}",
        f"/documents/collections/{collection_id}",
        f"{base}/view",
        f"{base}/text",
        f"{base}/pages/1",
        f"{base}/boxes?start=0&end=9",
        f"{base}/content",
    ]


def body(response: Any) -> bytes:
    if not response.streaming:
        return bytes(response.content)

    async def read() -> bytes:
        return b"".join([piece async for piece in response.streaming_content])

    return async_to_sync(read)()


def test_bob_reads_at_every_door_and_charlie_at_none(
    pdf: Document, bob: "User", charlie: "User"
) -> None:
    share(pdf, bob)
    theirs, missing = doors(pdf.pk, pdf.collection_id), doors(uuid4(), uuid4())
    for opened, closed in zip(theirs, missing, strict=True):
        answer = signed_in(bob).get(opened)
        assert answer.status_code == 200, opened
        body(answer)
        refused, unknown = (signed_in(charlie).get(path) for path in (opened, closed))
        assert refused.status_code == unknown.status_code == 404
        assert CANARY.encode() not in refused.content
        if opened.startswith("/api/"):
            assert refused.content == unknown.content
        stranger = Client().get(opened)
        assert stranger.status_code in (302, 401)


def test_the_end_of_sharing_holds_at_once(pdf: Document, bob: "User") -> None:
    share(pdf, bob)
    client = signed_in(bob)
    assert client.get(f"/api/documents/{pdf.pk}/text").status_code == 200
    with as_system():
        Access.objects.all().delete()
    for door in doors(pdf.pk, pdf.collection_id):
        assert client.get(door).status_code == 404


def test_a_page_is_a_picture_that_one_persons_browser_keeps(pdf: Document, alice: "User") -> None:
    response = signed_in(alice).get(f"/api/documents/{pdf.pk}/pages/2?width=700")
    assert response["Content-Type"] == "image/webp"
    assert response["Cache-Control"] == "private, no-cache"
    assert "Cookie" in response["Vary"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert Image.open(io.BytesIO(response.content)).width == 800
    for path in ("3", "0"):
        refused = signed_in(alice).get(f"/api/documents/{pdf.pk}/pages/{path}")
        assert refused.status_code == 422
        assert refused.json()["error"]["message"] == f"The file has no page {path}."
    too_wide = signed_in(alice).get(f"/api/documents/{pdf.pk}/pages/1?width=99999")
    assert too_wide.status_code == 400


def test_a_kept_picture_is_shown_while_it_is_the_newest_and_may_be_seen(
    pdf: Document, keep: Keep, bob: "User"
) -> None:
    share(pdf, bob)
    client, path = signed_in(bob), f"/api/documents/{pdf.pk}/pages/2"
    kept = client.get(path)
    again = {"If-None-Match": kept["ETag"]}
    same = client.get(path, headers=again)
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", kept["ETag"])
    assert client.get(f"{path}?width=300", headers=again).status_code == 200
    assert client.get(f"/api/documents/{pdf.pk}/pages/1", headers=again).status_code == 200
    keep("glass.pdf", make_pdf([PdfPage(LINES), PdfPage(LINES[:1])]), pdf)
    assert client.get(path, headers=again).status_code == 200, "the file was replaced"
    with as_system():
        Access.objects.all().delete()
    assert client.get(path, headers=again).status_code == 404


def test_a_passage_has_boxes_on_its_page(pdf: Document, alice: "User") -> None:
    client = signed_in(alice)
    text = client.get(f"/api/documents/{pdf.pk}/text").json()["text"]
    start = text.index(CANARY)
    path = f"/api/documents/{pdf.pk}/boxes?start={start}&end={start + len(CANARY)}"
    (page,) = client.get(path).json()["pages"]
    ((x0, y0, x1, y1),) = page["boxes"]
    assert page["number"] == 2
    assert x0 == pytest.approx(72, abs=2)
    assert y0 < 792 - 680 < y1 + 3
    assert x1 > 150
    assert client.get(f"/api/documents/{pdf.pk}/boxes?start=5&end=5").json() == {"pages": []}
    assert client.get(f"/api/documents/{pdf.pk}/boxes?start=-5&end=5").status_code == 400


def test_a_text_of_millions_is_read_in_windows(keep: Keep, alice: "User") -> None:
    line = "🏛 glass is clear, and old.\n"
    text = line * (5_000_000 // len(line))
    document = keep("long.txt", b"x", text=text, pages=[[0, len(text), "", 0.0, 0.0]])
    client = signed_in(alice)

    def window(**query: int) -> dict[str, Any]:
        found: dict[str, Any] = client.get(f"/api/documents/{document.pk}/text", query).json()
        return found

    assert window()["text"] == text[:50_000]
    middle = window(start=2_000_001, end=2_020_001)
    assert middle["text"] == text[2_000_001:2_020_001]
    assert middle["num_chars"] == len(text)
    last = window(start=len(text) - 5, end=len(text) + 90)
    assert (last["text"], last["end"]) == (text[-5:], len(text))
    assert window(start=len(text), end=len(text) + 9)["text"] == ""
    assert window(start=9, end=3)["text"] == ""
    page = client.get(f"/documents/{document.pk}?start=4000000&end=4000027")
    assert len(page.content) < 60_000


def test_the_file_is_never_shown_as_a_page(keep: Keep, alice: "User") -> None:
    data = b"<script>alert(1)</script><p>Words</p>" * 30_000
    document = keep("spät.html", data)
    response = signed_in(alice).get(f"/api/documents/{document.pk}/content")
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Length"] == str(len(data))
    assert body(response) == data


def test_a_file_that_is_gone_says_so(pdf: Document, alice: "User") -> None:
    assert isinstance(pdf.live_version, UUID)
    document_files.remove(pdf.live_version)
    client = signed_in(alice)
    for path in ("content", "pages/1", "boxes?start=0&end=9"):
        response = client.get(f"/api/documents/{pdf.pk}/{path}")
        assert response.status_code == 404
        assert response.json()["error"]["message"] == "The file of this document is gone."
    assert CANARY in client.get(f"/api/documents/{pdf.pk}/text").json()["text"]
    assert client.get(f"/documents/{pdf.pk}").status_code == 200


def test_what_is_found_is_shown_unless_a_version_is_named(
    keep: Keep, pdf: Document, alice: "User"
) -> None:
    old = pdf.live_version
    keep("glass.pdf", make_pdf([PdfPage([(72, 700, 12, "Newer words")])]), pdf)
    keep("glass.pdf", b"x", pdf, state=VersionState.FAILED, reason="It is damaged.", text="")
    client = signed_in(alice)

    def shown(version: object = "") -> dict[str, Any]:
        view = client.get(f"/api/documents/{pdf.pk}/view?version={version}").json()
        return dict(view["version"])

    assert shown()["number"] == 2
    assert shown(old)["number"] == 1
    assert shown(uuid4())["number"] == shown("nonsense")["number"] == 2
    page = client.get(f"/documents/{pdf.pk}?version={old}").content.decode()
    assert "not found any more" in page
    page = client.get(f"/documents/{pdf.pk}?version={uuid4()}&start=0&end=5").content.decode()
    assert "The version that was meant is gone." in page
    assert '"passage": null' in page
    with as_system():
        failed = Version.objects.get(document=pdf, number=3).pk
    page = client.get(f"/documents/{pdf.pk}?version={failed}").content.decode()
    assert "It is damaged." in page
    assert "Nothing of this file can be shown" in page


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("?start=2&end=6", '"passage": {"start": 2, "end": 6}'),
        ("?start=2&end=999999", '"passage": {"start": 2, "end": '),
        ("?start=6&end=2", '"passage": null'),
        ("?start=-1&end=2", '"passage": null'),
        ("?start=2", '"passage": null'),
        ("?start=9999999999999&end=99999999999999", '"passage": null'),
        ("?start=%3Cscript%3E&end=٣", '"passage": null'),
    ],
)
def test_an_address_names_a_passage_or_none(
    pdf: Document, alice: "User", query: str, passage: str
) -> None:
    assert passage in signed_in(alice).get(f"/documents/{pdf.pk}{query}").content.decode()


def test_a_picture_of_a_file_without_one_is_refused(keep: Keep, alice: "User") -> None:
    document = keep("notes.txt", b"words")
    response = signed_in(alice).get(f"/api/documents/{document.pk}/pages/1")
    assert response.status_code == 404


def test_who_may_write_is_asked_of_the_database(
    pdf: Document, alice: "User", bob: "User", charlie: "User"
) -> None:
    share(pdf, bob, may_write=True)
    share(pdf, charlie)
    path = f"/documents/collections/{pdf.collection_id}"
    pages = [signed_in(user).get(path).content.decode() for user in (alice, bob, charlie)]
    assert ["Add files" in page for page in pages] == [True, True, False]
    assert ['id="access-dialog"' in page for page in pages] == [True, False, False]


def test_what_is_not_read_yet_says_so(keep: Keep, alice: "User") -> None:
    document = keep("report.pdf", b"x", state=VersionState.QUEUED, text="")
    page = signed_in(alice).get(f"/documents/{document.pk}").content.decode()
    assert "This document is being read" in page
    view = signed_in(alice).get(f"/api/documents/{document.pk}/view").json()
    assert (view["document"]["kind"], view["version"]["state"]) == ("pdf", "queued")


def test_names_and_notes_are_shown_as_words(keep: Keep, alice: "User") -> None:
    """What a file says of itself is hostile."""
    evil = "<script>alert(1)</script></script>.txt"
    document = keep(evil, b"x", text=evil, notes=[evil], pages=[[0, len(evil), evil, 0.0, 0.0]])
    page = signed_in(alice).get(f"/documents/{document.pk}").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
