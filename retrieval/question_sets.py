"""Questions with the places of their answers: from SQuAD's JSON, or from a table of one's own."""

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from retrieval.parsing import Block, Limits, Page, Parsed, Unreadable, parse
from retrieval.storable import storable

MAX_BYTES = 256 * 2**20
_COLUMNS = "question, document, and answer or passage"


class BadSet(ValueError):
    """What is wrong with a set of questions, in a sentence."""


@dataclass(frozen=True, slots=True)
class Question:
    """`document` is an index; `spans` are where in its text it is answered, each of them fully."""

    text: str
    document: int
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    sha256: str
    documents: list[Parsed] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def load(path: Path) -> QuestionSet:
    """A file of SQuAD's format (SQuAD, XQuAD, MLQA …) or a CSV. Raises BadSet and OSError.

    A CSV has a line for each question: `document` is a file, seen from the table's folder, of any kind
    that is read here; `answer`, or `passage`, is what stands in it, and where that is empty every
    passage of the document answers.
    """
    if path.stat().st_size > MAX_BYTES:
        raise BadSet(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB.")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadSet(f"{path.name} is not in UTF-8.") from None
    found = QuestionSet(storable(path.name), hashlib.sha256(data).hexdigest())
    if text.lstrip().startswith(("{", "[")):
        _read_squad(text, found)
    else:
        _read_table(text, found, path.parent)
    if not found.questions:
        raise BadSet(f"{path.name} holds no question that has an answer.")
    return found


def _read_squad(text: str, found: QuestionSet) -> None:
    """Source: Rajpurkar et al., SQuAD (2016); unanswerable questions of 2.0 are left out."""
    try:
        for article in json.loads(text)["data"]:
            for paragraph in article["paragraphs"]:
                # JSON can say what no text in Postgres holds; each sign has one in its place.
                _add_paragraph(storable(str(paragraph["context"])), paragraph["qas"], found)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
        message = f"{found.name} is JSON, but not as SQuAD's: data, paragraphs, context and qas."
        raise BadSet(message) from None


def _add_paragraph(context: str, questions: Any, found: QuestionSet) -> None:
    for one in questions:
        answers = [(int(given["answer_start"]), str(given["text"])) for given in one["answers"]]
        spans = tuple((start, start + len(text)) for start, text in answers if text)
        if spans:
            number = len(found.documents)
            found.questions.append(Question(storable(str(one["question"])), number, spans))
    found.documents.append(plain_document(context))


def plain_document(text: str) -> Parsed:
    """A text as it is, of one page and one block."""
    pages, blocks = (Page(1, 0, len(text)),), (Block(0, len(text), "text"),)
    return Parsed(text, pages, blocks, "", "text/plain", "")


def _read_table(text: str, found: QuestionSet, folder: Path) -> None:
    known: dict[str, int] = {}
    for line, row in _rows(text, found.name):
        name = row["document"]
        if not row["question"] or not name:
            raise BadSet(f"Line {line}: question and document may not be empty.")
        if name not in known:
            known[name] = len(found.documents)
            found.documents.append(_parsed(folder / name, line))
        answer = row.get("passage") or row.get("answer") or ""
        spans = _spans(found.documents[known[name]].text, answer)
        if not spans:
            raise BadSet(f"Line {line}: {name} does not hold {answer[:80]!r}.")
        found.questions.append(Question(row["question"], known[name], spans))


def _rows(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Their numbers in the file, and what they hold. Columns may be divided as people's programs do."""
    head = text.partition("\n")[0]
    divider = max(",;\t", key=head.count)
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=divider, strict=True)
    try:
        columns = [str(column).strip().lower() for column in reader.fieldnames or []]
        if not {"question", "document"} <= set(columns) or not {"answer", "passage"} & set(columns):
            there = ", ".join(columns) or "none"
            raise BadSet(f"{name} needs the columns {_COLUMNS}; there are: {there[:200]}.")
        reader.fieldnames = columns
        for row in reader:
            yield (
                reader.line_num,
                {key: (value or "").strip() for key, value in row.items() if isinstance(key, str)},
            )
    except csv.Error as error:
        raise BadSet(f"Line {reader.line_num} of {name}: {error}.") from None


def _parsed(path: Path, line: int) -> Parsed:
    try:
        return parse(path, name=path.name, limits=Limits())
    except Unreadable as error:
        raise BadSet(f"Line {line}: {path.name}: {error.message}") from None
    except (OSError, ValueError):
        raise BadSet(f"Line {line}: there is no file {path}.") from None


def _spans(text: str, answer: str) -> tuple[tuple[int, int], ...]:
    """All places of the answer; white space may be another. Everything, where there is none given."""
    if not answer:
        return ((0, len(text)),)
    pattern = r"\s+".join(map(re.escape, answer.split()))
    return tuple(match.span() for match in re.finditer(pattern, text))
