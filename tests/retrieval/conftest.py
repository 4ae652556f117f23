"""Files on the disk, and what is read of them; collections of Alice's with what can be found."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from retrieval.parsing import Limits, Parsed, Unreadable, parse

if TYPE_CHECKING:
    from retrieval.models import Collection, Document, EmbeddingModel
    from webapp.models import User

Read = Callable[..., Parsed]
Add = Callable[..., "Document"]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """read(name, data) parses a file of this content; `limits` are the usual ones."""

    def read(name: str, data: bytes | str, **limits: object) -> Parsed:
        path = tmp_path / "file"  # without a name of its own: that is given
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        parsed = parse(path, name=name, limits=Limits(**limits))  # type: ignore[arg-type]
        check_places(parsed)
        return parsed

    return read


@pytest.fixture
def refusal(read: Read) -> Callable[..., Unreadable]:
    """As `read`, of a file that cannot be read: why not."""

    def refusal(name: str, data: bytes | str, **limits: object) -> Unreadable:
        with pytest.raises(Unreadable) as raised:
            read(name, data, **limits)
        assert raised.value.message.endswith(".")
        return raised.value

    return refusal


def check_places(parsed: Parsed) -> None:
    """Pages and blocks are in order, and what no block has is white space."""
    place = 0
    for block in parsed.blocks:
        assert place <= block.start < block.end <= len(parsed.text)
        assert not parsed.text[place : block.start].strip()
        place = block.end
    assert not parsed.text[place:].strip()
    assert [page.number for page in parsed.pages] == list(range(1, len(parsed.pages) + 1))
    place = 0
    for page in parsed.pages:
        assert place <= page.start <= page.end <= len(parsed.text)
        place = page.end


def blocks(parsed: Parsed, kind: str) -> list[str]:
    return [parsed.text[b.start : b.end] for b in parsed.blocks if b.kind == kind]


def page_texts(parsed: Parsed) -> list[str]:
    return [parsed.text[page.start : page.end] for page in parsed.pages]


@pytest.fixture
def add() -> Add:
    """A document with these passages, live."""
    from retrieval.indexing import Passage, make_live
    from retrieval.models import Document, Version
    from webapp.tenancy import as_system

    def add_document(
        collection: "Collection",
        *texts: str,
        vectors: Sequence[Sequence[float]] = (),
        model: "EmbeddingModel | None" = None,
        **fields: object,
    ) -> "Document":
        with as_system():
            document = Document.objects.create(
                collection=collection, **{"name": texts[0][:20] if texts else "", **fields}
            )
            version = Version.objects.create(document=document, collection=collection)
            given = vectors or [None] * len(texts)
            passages = [
                Passage(text, 0, len(text), vector=vector)
                for text, vector in zip(texts, given, strict=True)
            ]
            make_live(version, passages, model)
            document.refresh_from_db()
        return document

    return add_document


@pytest.fixture
def notes(alice: "User") -> "Collection":
    from retrieval.models import Collection
    from webapp.tenancy import as_user

    with as_user(alice.pk):
        return Collection.objects.create(owner=alice, name="Notes")
