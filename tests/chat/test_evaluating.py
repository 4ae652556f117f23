"""manage.py evalretrieval beside a site that is served, and without one."""

import json
from contextlib import closing
from pathlib import Path

from tests.chat.test_documents import hits, visiting
from tests.retrieval.test_question_sets import squad, written
from tests.sites import Site, SiteMaker

SET = squad(
    ("The quetzal eats wild avocados.", [("What does the quetzal eat?", "wild avocados")]),
    ("Peat burns slowly.", [("How does peat burn?", "slowly")]),
)


def measured(site: Site, path: Path) -> float:
    done = site.manage("evalretrieval", str(path), "--by", "words", "--json", "-")
    assert done.returncode == 0, done.stderr
    return float(json.loads(done.stdout)["results"][0]["recall"]["1"])


def test_it_works_while_the_site_is_served_and_nobody_sees_it(
    chat_site: Site, tmp_path: Path
) -> None:
    assert measured(chat_site, written(tmp_path, SET, "birds.json")) == 1.0
    with visiting(chat_site, "eval-bob") as bob:
        assert hits(bob, "What does the quetzal eat?") == []
        assert bob.get("/api/collections").json()["collections"] == []
    with closing(chat_site.set_up()) as administrator:
        assert "birds.json" in administrator.get("/admin/retrieval/evaluation/").text


def test_and_while_it_is_not(make_site: SiteMaker, tmp_path: Path) -> None:
    assert measured(make_site(), written(tmp_path, SET)) == 1.0


def test_what_is_wrong_is_told_in_a_line(chat_site: Site, tmp_path: Path) -> None:
    done = chat_site.manage("evalretrieval", str(written(tmp_path, "question;answer\n")))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("CommandError: set.csv needs the columns")
