"""Web pages, Markdown, tables, e-mail and plain text in whatever encoding."""

import csv
import io
import re
import tempfile
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrieval.parsing import Limits
from retrieval.parsing.formats import delimited
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, table
from tests.retrieval.conftest import Read, blocks, page_texts

ARTICLE = " ".join(
    f"The glazier cut pane number {number} with a steady hand." for number in range(30)
)
PAGE = f"""<!DOCTYPE html><html lang="en-GB"><head><title>On Glass</title><style>p {{}}</style></head>
<body><nav><a href="/">Home</a> <a href="/shop">Shop for anything at all</a></nav>
<article><h1>On Glass</h1><p>{ARTICLE}</p><h2>Kinds</h2><p>{ARTICLE}</p>
<table><tr><th>Kind</th><th>Use</th></tr><tr><td>Float</td><td>Windows</td></tr></table></article>
<footer>Imprint and privacy of the shop</footer><script>var hidden = "secret";</script></body></html>"""


def test_of_a_web_page_the_article_is_read(read: Read) -> None:
    parsed = read("glass.html", PAGE)
    assert (parsed.title, parsed.language, parsed.media_type) == ("On Glass", "en-GB", "text/html")
    assert "pane number 29" in parsed.text
    assert "hidden" not in parsed.text
    assert "Shop for anything" not in parsed.text
    assert any("Kinds" in heading for heading in blocks(parsed, "heading"))
    assert any("Float" in table for table in blocks(parsed, "table"))


@pytest.mark.parametrize("num_words", [5, 500])
def test_a_page_may_leave_out_what_html_lets_it(read: Read, num_words: int) -> None:
    """Neither <html> nor <body>, and the first element is one that libxml2 does not know."""
    words = " ".join(f"word{n}" for n in range(num_words))
    page = f"<!doctype html><title>On Glass</title><article><h1>Glass</h1><p>{words}</p></article>"
    parsed = read("glass.html", page)
    assert parsed.title == "On Glass"
    assert f"word{num_words - 1}" in parsed.text
    assert "On Glass" not in parsed.text


def test_a_web_page_without_an_article_is_read_as_it_stands(read: Read) -> None:
    page = "<html><body><h2>Menu</h2><ul><li>Tea<ol><li>black</li></ol></li><li>Milk</li></ul>"
    page += "<div>Open <b>daily</b>.<pre>a\n  b</pre></div><p style='display: none'>not this</p>"
    parsed = read("menu", page)
    assert parsed.text == "Menu\n\n- Tea\n  1. black\n- Milk\n\nOpen daily.\n\na\n  b"


def test_markdown_is_kept_to_the_character_with_its_blocks(read: Read) -> None:
    text = (
        "---\ntitle: Panes\n---\n# One\n\nWords\nof two lines.\n\n```py\n# no heading\n\nx = 1\n```\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n- item\n\nTwo\n---\nEnd."
    )
    parsed = read("panes.md", text.replace("\n", "\r\n"))
    assert parsed.text == text
    assert parsed.title == "Panes"
    kinds = [(block.kind, block.level) for block in parsed.blocks]
    assert kinds == [
        ("code", 0),
        ("heading", 1),
        ("text", 0),
        ("code", 0),
        ("table", 0),
        ("list", 0),
        ("heading", 2),
        ("text", 0),
    ]
    assert blocks(parsed, "code")[1:] == ["```py\n# no heading\n\nx = 1\n```"]


FRONT = (
    '---\ntitle: "On panes"\nauthor:\n  - Ada\ntags:\n- glass\n\n# of last year\n'
    "date: 2024-05-01\nlang: en\nabstract: |\n  Panes: how they\n  are cut\n---"
)


@pytest.mark.parametrize("behind", ["", "\n# One\n\nWords", "\n\nWords\n---\nEnd."])
def test_what_markdown_says_of_itself_is_kept_as_a_block(read: Read, behind: str) -> None:
    parsed = read("panes.md", FRONT + behind)
    assert parsed.text == FRONT + behind
    assert blocks(parsed, "code") == [FRONT]
    assert (parsed.title, parsed.language) == ("On panes", "en")


@pytest.mark.parametrize(
    "text",
    [
        "---\n\n# Chapter 1\n\nFirst words.\n\n---\n\n# Chapter 2",
        "---\nSome words.\n\ntitle: no title\n---\nMore words.",
        "---\n---\nMore words.",
        "---\nkey: value\n\nWords without an end.",
        "---\n" + "key: value\n" * 300 + "---\nMore words.",
    ],
)
def test_markdown_that_begins_with_a_rule_is_kept_to_the_character(read: Read, text: str) -> None:
    parsed = read("panes.md", text)
    assert parsed.text == text
    assert blocks(parsed, "code") == []
    assert parsed.title != "no title"


def test_markdown_without_a_title_takes_no_other_line_for_it(read: Read) -> None:
    assert read("panes.md", "---\ntitle:\nauthor: Ada\n---\nWords").title == "panes"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("p.csv", 'Item,Price\nTea,3\n"Milk, warm",2\n'),
        ("p.csv", 'Item;Price\r\nTea;3\r\n"Milk, warm";2\r\n'),
        ("p.tsv", "Item\tPrice\nTea\t3\nMilk, warm\t2\n"),
        ("p.csv", '\ufeffItem,Price\nTea,3\n"Milk, warm",2\n'),
        ("p.csv", '\ufeffsep=;\r\nItem;Price\r\nTea;3\r\n"Milk, warm";2\r\n'),
        ("p.csv", '"sep=^"\nItem^Price\nTea^3\nMilk, warm^2\n'),
        ("p.csv", 'Item|Price\nTea|3\n"Milk, warm"|2\n'),
        ("p.csv", 'Item, Price\nTea, 3\n"Milk, warm", "2"\n'),
    ],
)
def test_a_table_in_text_is_a_table_whatever_divides_it(read: Read, name: str, data: str) -> None:
    rows = ["| Item | Price |", "| --- | --- |", "| Tea | 3 |", "| Milk, warm | 2 |"]
    assert blocks(read(name, data), "table") == ["\n".join(rows)]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (
            'id,nick,address\n1,\'Bob\',"Main St 5, Boston"\n2,Al,"Elm St 7, Austin"\n',
            [("id", "nick", "address"), ("1", "'Bob'", "Main St 5, Boston")],
        ),
        ("1,50;2,50\n3,50;4,50", [("1,50", "2,50"), ("3,50", "4,50")]),
        ("1,50;2\n3,50;4\n5;6\n", [("1,50", "2"), ("3,50", "4"), ("5", "6")]),
        ("1,2,3\n4,5,6", [("1", "2", "3"), ("4", "5", "6")]),
        ("a;b\nSo, it is;1\nYes, well, no;2\n", [("a", "b"), ("So, it is", "1")]),
        ("id,said\n1,so; it\n2,yes; no\n3,a\n", [("id", "said"), ("1", "so; it")]),
        ('id,said\n1,"a;b"\n2,"c;d"\n', [("id", "said"), ("1", "a;b"), ("2", "c;d")]),
        ("Report\n\nid;who;what\n1;a;b\n2;c;d\n", [("Report", "", ""), ("id", "who", "what")]),
        ("One column\nof, words\nonly\n", [("One column", ""), ("of", "words")]),
    ],
)
def test_columns_are_divided_where_most_rows_are(
    read: Read, data: str, rows: list[tuple[str, ...]]
) -> None:
    lines = read("p.csv", data).text.split("\n")
    del lines[1]  # the rule below the header
    assert lines[: len(rows)] == ["| " + " | ".join(row) + " |" for row in rows]


CELLS = st.text(alphabet="ab1 '\",;|\t\n", max_size=6)
TABLES = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(TABLES, st.sampled_from(",;\t|"), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_what_a_program_writes_is_read_as_the_same_table(
    rows: list[list[str]], divider: str, quoting: Any
) -> None:
    if quoting == csv.QUOTE_MINIMAL:  # other signs stand there unquoted, and might be taken for it
        rows = [[re.sub(f"[^{divider}\\w \\n'\"]", "-", cell) for cell in row] for row in rows]
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    assume(rows)
    written = io.StringIO()
    csv.writer(written, delimiter=divider, quoting=quoting).writerows(rows)
    writer = Writer(Limits())
    with tempfile.TemporaryFile() as file:
        file.write(written.getvalue().encode())
        file.flush()
        delimited.read(Source(file, "p.csv", Limits(), ""), writer)
    assert writer.parsed("text/csv", "p.csv").text == table(rows)


def test_a_csv_is_cut_after_so_many_rows(read: Read) -> None:
    parsed = read(
        "p.csv", "n,m\n" + "".join(f"row {n},{n}\n" for n in range(100)), max_sheet_rows=9
    )
    assert "row 7 " in parsed.text
    assert "row 8 " not in parsed.text
    assert parsed.notes == ("Only the first 9 rows were read.",)


GERMAN = "Größere Übungen für Füße: Straße, Öl und Äpfel.\n" * 3
JAPANESE = "窓ガラスは透明な板です。光を通します。昔から使われています。\n" * 5
RUSSIAN = "Стекло прозрачно и хрупко, его делают из песка.\n" * 5


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "utf-8"),
        (GERMAN, "utf-8-sig"),
        (GERMAN, "cp1252"),
        (GERMAN, "utf-16"),
        (GERMAN, "utf-16-le"),
        (GERMAN, "utf-16-be"),
        (GERMAN, "utf-32"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        ("Grüße", "latin-1"),
    ],
)
def test_text_is_read_in_its_encoding(read: Read, text: str, encoding: str) -> None:
    assert read("words.txt", text.encode(encoding)).text == text.strip()


def test_a_web_page_is_read_in_the_encoding_that_it_declares(read: Read) -> None:
    page = (
        '<html><head><meta charset="iso-8859-2"></head><body><p>Zażółć gęślą jaźń</p></body></html>'
    )
    assert read("a.html", page.encode("iso-8859-2")).text == "Zażółć gęślą jaźń"


def test_text_is_composed_and_without_controls(read: Read) -> None:
    parsed = read("words.txt", "e\u0301 a\rb\u2028c\x07\n\n\n\nd\u0085e\ufeff")
    assert parsed.text == "é a\nb\nc\n\nd\ne"
    assert [block.kind for block in parsed.blocks] == ["text", "text"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sniff.py", "def is_pdf(data):\n    return data.startswith(b'%PDF-')"),
        ("notes.md", "A PDF starts with `%PDF-1.7`, a zip with PK."),
        ("format.txt", "The first line of such a file:\n%PDF-1.7\nand then its objects."),
    ],
)
def test_text_about_pdf_is_text(read: Read, name: str, text: str) -> None:
    assert read(name, text).text == text


def test_form_feeds_divide_pages(read: Read) -> None:
    assert page_texts(read("a.txt", "one\f\ntwo\n\nthree\f")) == ["one", "two\n\nthree"]


def test_code_is_one_block_with_its_indentation(read: Read) -> None:
    code = "\n    indented()\n\nif x:\n\ty()\n"
    parsed = read("x.py", code)
    assert blocks(parsed, "code") == ["    indented()\n\nif x:\n\ty()"]
    assert parsed.title == "x.py"


def letter(subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ada Löve <ada@example.org>"
    message["To"] = "bob@example.org"
    message["Subject"] = subject
    message.set_content(text)
    return message


def test_a_letter_has_its_head_its_words_and_the_names_of_what_is_attached(read: Read) -> None:
    message = letter("Größe der Scheibe", "Dear Bob,\n\nit is 3 × 4.\n")
    message.add_alternative("<p>the same in HTML</p>", subtype="html")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Maß.pdf")
    parsed = read("x", message.as_bytes())
    assert parsed.media_type == "message/rfc822"
    assert parsed.title == "Größe der Scheibe"
    assert parsed.text == (
        "From: Ada Löve <ada@example.org>\nTo: bob@example.org\nSubject: Größe der Scheibe\n\n"
        "Dear Bob,\n\nit is 3 × 4.\n\nAttached: Maß.pdf"
    )


def test_a_letter_in_html_only_is_read(read: Read) -> None:
    message = letter("x", "")
    message.set_content("<h1>Hello</h1><p>there<script>no</script></p>", subtype="html")
    assert read("x.eml", message.as_bytes()).text.endswith("\n\nHello\n\nthere")


def posted(kind: str, *parts: tuple[str, str]) -> str:
    """A message of parts, each of a kind and with words."""
    bodies = "".join(f"--x\nContent-Type: {kind}\n\n{words}\n" for kind, words in parts)
    return (
        f"From: a@b.org\nTo: c@d.org\nSubject: x\nMIME-Version: 1.0\n"
        f"Content-Type: {kind}; boundary=x\n\n{bodies}--x--\n"
    )


def said_in(read: Read, message: str) -> str:
    return read("x.eml", message).text.partition("\n\n")[2]


def test_only_alternatives_stand_for_each_other(read: Read) -> None:
    html, footer = ("text/html", "<p>The rent is 4711 euro.</p>"), ("text/plain", "of a list")
    assert said_in(read, posted("multipart/mixed", html, footer)) == (
        "The rent is 4711 euro.\n\nof a list"
    )
    plain = ("text/plain", "The same in words.")
    assert said_in(read, posted("multipart/alternative", plain, html)) == "The same in words."
    assert said_in(read, posted("multipart/alternative", html, plain)) == "The same in words."
    blank = ("text/plain", " ")
    assert said_in(read, posted("multipart/alternative", blank, html)) == "The rent is 4711 euro."


def test_of_a_mailbox_every_message_is_read(read: Read) -> None:
    first = "From a@b.org Mon Jan  1 10:00:00 2024\n" + posted(
        "multipart/mixed", ("text/plain", "First words")
    )
    second = (
        "From q@b.org Tue Jan  2 10:00:00 2024\nFrom: q@b.org\nTo: d@e.org\nSubject: Second\n\n"
        "Second words\n\nFrom here on all is mine\nand no head.\n"
    )
    for one, other in ((first, second), (second, first)):
        parsed = read("all.mbox", f"{one}\n{other}")
        assert len(parsed.pages) == 2
        assert parsed.title == "all"
        for words in ("First words", "Second words", "all is mine"):
            assert words in parsed.text


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("kind", ["", "text/plain; charset=us-ascii", "text/plain", "text/html"])
def test_letters_that_say_no_encoding_are_read_as_what_they_look_like(
    read: Read, kind: str, encoding: str
) -> None:
    shown = "From: Jürgen Müller <j@b.org>\nTo: Alle <c@d.org>\nSubject: Kündigung für Büroräume\n"
    head = shown + (f"MIME-Version: 1.0\nContent-Type: {kind}\n" if kind else "")
    words = "Die Kündigungsfrist beträgt für Büroräume künftig drei Monate; schöne Grüße."
    given = f"<html><head><meta charset={encoding}></head><p>{words}</p></html>"
    body = given if kind == "text/html" else words
    parsed = read("memo.txt", f"{head}\n{body}\n".encode(encoding))
    assert parsed.text == f"{shown}\n{words}"


def test_messages_in_a_message_are_pages_down_to_a_depth(read: Read) -> None:
    message = letter("level 1", "words 1")
    for level in range(2, 6):
        outer = letter(f"level {level}", f"words {level}")
        outer.add_attachment(message)
        message = outer
    parsed = read("x.eml", message.as_bytes(), max_depth=3)
    assert [page.label for page in parsed.pages] == ["level 5", "level 4", "level 3"]
    assert "words 4" in page_texts(parsed)[1]
    assert parsed.notes == ("Messages nested deeper than 3 were left out.",)


def test_a_name_that_is_no_name_does_no_harm(read: Read) -> None:
    name = "../" * 500 + "a\x00b\n\u202e" + "x" * 10_000 + ".txt"
    assert len(read(name, "Words").title) <= 300
