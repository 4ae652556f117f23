"""Sets of questions: SQuAD's format and tables of one's own, right and wrong."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from retrieval.question_sets import BadSet, load
from tests.sites import ROOT

XQUAD = ROOT.parent / "shared" / "data" / "xquad"


def squad(*paragraphs: tuple[str, list[tuple[str, str]]]) -> str:
    return json.dumps(
        {
            "data": [
                {
                    "paragraphs": [
                        {
                            "context": context,
                            "qas": [
                                {
                                    "question": question,
                                    "answers": [
                                        {"text": answer, "answer_start": context.find(answer)}
                                    ]
                                    if answer
                                    else [],
                                }
                                for question, answer in questions
                            ],
                        }
                        for context, questions in paragraphs
                    ]
                }
            ]
        }
    )


def written(folder: Path, text: str | bytes, name: str = "set.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problem(path: Path) -> str:
    with pytest.raises(BadSet) as caught:
        load(path)
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_squads_format_is_read(tmp_path: Path) -> None:
    given = squad(
        ("Pears grow on trees.", [("Where do pears grow?", "trees"), ("Why?", "")]),
        ("The sea is salty.", [("What is salty?", "The sea")]),
    )
    found = load(written(tmp_path, given))
    assert [document.text for document in found.documents] == [
        "Pears grow on trees.",
        "The sea is salty.",
    ]
    assert [(q.text, q.document) for q in found.questions] == [
        ("Where do pears grow?", 0),
        ("What is salty?", 1),
    ]
    (start, end) = found.questions[0].spans[0]
    assert found.documents[0].text[start:end] == "trees"
    assert found.sha256 == hashlib.sha256(given.encode()).hexdigest()
    assert found.name == "set.csv"


def test_what_no_database_keeps_is_replaced_sign_by_sign(tmp_path: Path) -> None:
    context = "Pears\0grow \ud800 on trees."
    given = squad((context, [("Where \ud800 do pears\0 grow?", "trees")]))
    found = load(written(tmp_path, given))
    (text,) = (document.text for document in found.documents)
    assert text == "Pears\ufffdgrow \ufffd on trees."
    start, end = found.questions[0].spans[0]
    assert text[start:end] == "trees"
    assert found.questions[0].text == "Where \ufffd do pears\ufffd grow?"


def test_an_answer_that_begins_nowhere(tmp_path: Path) -> None:
    given = squad(("Pears grow on trees.", [("Where?", "trees")]))
    endless = given.replace('"answer_start": 14', '"answer_start": Infinity')
    assert endless != given
    assert "not as SQuAD's" in problem(written(tmp_path, endless))


@pytest.mark.skipif(not XQUAD.exists(), reason="XQuAD is not here")
@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_xquad_is_read(language: str) -> None:
    found = load(XQUAD / f"xquad.{language}.json")
    assert (len(found.documents), len(found.questions)) == (240, 1190)
    for question in found.questions:
        for start, end in question.spans:
            assert 0 <= start < end <= len(found.documents[question.document].text)


@pytest.mark.parametrize("divider", [",", ";", "\t"])
def test_a_table_names_files_and_what_stands_in_them(tmp_path: Path, divider: str) -> None:
    (tmp_path / "docs").mkdir()
    written(tmp_path / "docs", "# Fruit\n\nPears grow\non trees. Pears grow on trees.", "fruit.md")
    written(tmp_path, "<html><body><p>The sea is salty.</p></body></html>", "sea.html")
    rows = [
        ["Question ", "Document", "Answer", "note"],
        ["Where do pears grow?", "docs/fruit.md", "Pears grow on trees.", "twice"],
        ["What is salty?", "sea.html", "The sea", ""],
        ["And what is fruit?", "docs/fruit.md", "", ""],
    ]
    text = "\ufeff" + "\r\n".join(divider.join(row) for row in rows) + "\r\n"
    found = load(written(tmp_path, text))
    assert len(found.documents) == 2
    assert [question.document for question in found.questions] == [0, 1, 0]
    fruit = found.documents[0].text
    places = [fruit[start:end].split() for start, end in found.questions[0].spans]
    assert places == [["Pears", "grow", "on", "trees."]] * 2
    assert found.questions[2].spans == ((0, len(fruit)),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "columns question, document"),
        ("question,answer\na,b\n", "there are: question, answer"),
        ("question,document\na,b\n", "answer or passage"),
        ("question,document,answer\n", "no question"),
        ("question,document,answer\n,doc.txt,pear\n", "Line 2: question and document"),
        ("question,document,answer\nWhat?,,pear\n", "Line 2: question and document"),
        (
            "question,document,answer\nWhat?,doc.txt,pear\nWhy?,doc.txt,fig\n",
            "Line 3: doc.txt .*'fig'",
        ),
        ("question,document,answer\nWhat?,none.txt,pear\n", "Line 2: there is no file"),
        (
            "question,document,answer\nWhat?,empty.txt,pear\n",
            "Line 2: empty.txt: The file is empty",
        ),
        ("question,document,answer\nWhat?,bad.pdf,pear\n", "Line 2: bad.pdf: "),
        ('question,document,answer\nWhat?,doc.txt,"pear\n', r"Line \d of set.csv"),
        (b"question,document,answer\n\xff\xfe\n", "UTF-8"),
        ("{}", "SQuAD"),
        ("[1, 2]", "SQuAD"),
        ('{"data": [{"paragraphs": [{"context": "x"}]}]}', "SQuAD"),
        ('{"data": []}', "no question"),
        ("{" * 100_000, "SQuAD"),
        ('{"data": ', "SQuAD"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str | bytes, words: str) -> None:
    written(tmp_path, "A pear.", "doc.txt")
    written(tmp_path, "", "empty.txt")
    written(tmp_path, "%PDF-1.7 nothing", "bad.pdf")
    assert re.search(words, problem(written(tmp_path, text)))
