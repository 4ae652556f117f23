"""Harmless texts of others that are at hand: code and manuals of this Python, and what shared/data has.

Nothing is learnt from them; what is flagged of every other one was looked at, so that they are a set to
develop with.
"""

import ast
import json
import sysconfig
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from random import Random

_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
_QUESTION = "What is the output of this code:\n"


def technical() -> dict[str, list[str]]:
    """By the name of their set; the same ones each time on the same machine."""
    functions, docstrings = _standard_library()
    metadata = [one.read_text("METADATA") or "" for one in distributions()]
    pages = [page for one in metadata if len(page := one.partition("\n\n")[2].strip()) > 500]
    sets = {
        "harmless: code with a question": _some(functions, 100),
        "harmless: docstrings": _some(docstrings, 120),
        "harmless: pages of packages": _some([page[:3000] for page in pages], 60),
    }
    for language in ("en", "de", "zh"):
        file = _DATA / "xquad" / f"xquad.{language}.json"
        if file.is_file():
            articles = json.loads(file.read_text("utf-8"))["data"]
            found = [one["context"] for article in articles for one in article["paragraphs"]]
            sets[f"harmless: encyclopaedia, {language}"] = _some(found, 120)
    file = _DATA / "openai-openapi" / "openapi.json"
    if file.is_file():
        found = [
            one for one in _descriptions(json.loads(file.read_text("utf-8"))) if len(one) > 150
        ]
        sets["harmless: an API's manual"] = _some(found, 120)
    return sets


def _some(texts: list[str], count: int) -> list[str]:
    texts = sorted(set(texts))
    return Random(count).sample(texts, min(count, len(texts)))


def _standard_library() -> tuple[list[str], list[str]]:
    """Functions of some length, each with a question, and docstrings."""
    functions, docstrings = [], []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        source = path.read_text("utf-8")
        lines = source.split("\n")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef):
                continue
            if len(docstring := ast.get_docstring(node) or "") > 200:
                docstrings.append(docstring[:1500])
            code = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if 300 < len(code) < 1500:
                functions.append(_QUESTION + code)
    return functions, docstrings


def _descriptions(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(found := node.get("description"), str):
            yield found
        for value in node.values():
            yield from _descriptions(value)
    elif isinstance(node, list):
        for value in node:
            yield from _descriptions(value)
