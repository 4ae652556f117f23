"""The operator names another embedding model: what was there is found all the while, whatever dies."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from inference import BUILTIN_EMBEDDING, EngineConfig
from inference.catalog import discover
from tests.chat.test_documents import a_collection, hits, ready, upload
from tests.sites import Site, SiteMaker, email_of, wait_until

# Alike in no word, so that only a vector finds it.
BY_MEANING = ("animals living underwater", "Dolphins and whales swim in the sea.")
MANY = "\n\n".join(
    f"# Part {n}\n\n" + f"The numbat number {n} eats termites by the river. " * 10
    for n in range(140)
)


def changed(folder: Path, name: str) -> str:
    """The built-in model's weights as another model. A value of VITRINE_MODELS."""
    source = discover(EngineConfig(models_dir=folder))[BUILTIN_EMBEDDING].path
    assert source is not None
    target = folder / name
    shutil.copytree(source, target, copy_function=os.symlink)
    revise(target)
    return f"{name}={target}"


def revise(target: Path) -> None:
    """Another revision: every JSON file beside the weights counts."""
    note = target / "revision.json"
    note.write_text("1" + note.read_text() if note.exists() else "1")


def rows(site: Site) -> list[tuple[str, int]]:
    """Each model in use, and how many vectors it has made."""
    own = f"host={site.data_dir}/sockets user=vitrine dbname=vitrine"
    with psycopg.connect(own) as connection:
        connection.execute("SET vitrine.scope = 'system'")
        return connection.execute(
            "SELECT m.name, count(e.id) FROM retrieval_embeddingmodel m"
            " LEFT JOIN retrieval_embedding e ON e.model_id = m.id GROUP BY m.id ORDER BY m.id"
        ).fetchall()


def until(site: Site, holds: Callable[[list[tuple[str, int]]], Any], what: str) -> None:
    wait_until(lambda: holds(rows(site)), timeout_s=120, what=what)


def restarted_with(site: Site, **environment: str) -> None:
    assert site.stop() == 0
    site.environment |= environment
    site.start()


@pytest.mark.timeout(400)  # six starts of a site
def test_another_model_another_revision_and_a_kill_in_between(
    make_site: SiteMaker, tmp_path: Path
) -> None:
    other = changed(tmp_path, "other")
    with make_site(VITRINE_MODELS=other) as site:
        site.set_up().close()
        site.sign_up("numbat").close()
        with closing(site.sign_in(email_of("numbat"))) as visitor:
            visitor.get("/")
            visitor.headers["X-CSRFToken"] = visitor.cookies["vitrine_csrf"]
            collection = a_collection(visitor)
            for name, text in (("sea.txt", BY_MEANING[1]), ("many.md", MANY)):
                ready(visitor, upload(visitor, collection, text, name).json()["id"])
            ((_, num),) = rows(site)
            assert num > 128, num

            def by_meaning() -> str:
                best = hits(visitor, BY_MEANING[0], collections=[collection])[0]
                assert best["vector_rank"] == 1
                return str(best["text"])

            restarted_with(site, VITRINE_EMBEDDING_MODEL="other")
            until(site, lambda found: len(found) == 2 and found[1][1] > 0, "a batch")
            site.kill()
            site.start()
            assert by_meaning() == BY_MEANING[1]
            assert len(rows(site)) == 2, "the dead process still has the lease"
            site.execute("UPDATE retrieval_embeddingmodel SET lease_until = now()")
            until(site, lambda found: found == [("other", num)], "one model")
            assert by_meaning() == BY_MEANING[1]

            revise(tmp_path / "other")
            restarted_with(site)
            until(site, lambda found: len(found) == 2, "a revision")
            until(site, lambda found: len(found) == 1, "the end of the one before")
            assert rows(site) == [("other", num)]
            assert by_meaning() == BY_MEANING[1]

            # The old one cannot be asked any more.
            restarted_with(site, VITRINE_EMBEDDING_MODEL=BUILTIN_EMBEDDING, VITRINE_MODELS="")
            for number in (12, 34):
                assert hits(visitor, f"numbat number {number}", collections=[collection])
            assert len(rows(site)) == 2
            until(site, lambda found: found == [(BUILTIN_EMBEDDING, num)], "back")
            assert by_meaning() == BY_MEANING[1]
            assert site.output.count("questions have no vectors by other") == 1
