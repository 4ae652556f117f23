"""HTML to blocks, as it is written: for pages without an article, chapters of e-books and letters."""

from collections.abc import Iterator
from typing import Any

from lxml import etree, html

from retrieval.parsing.writer import Writer, one_line, table

# Not the whole head: where a page leaves out its <body>, which HTML allows, libxml2 ends the head only
# at the first element that it knows, and it knows no <article>.
_LEFT_OUT = frozenset(
    {"script", "style", "noscript", "template", "title", "svg", "math", "iframe", "object", "embed"}
    | {"select", "datalist", "canvas", "audio", "video"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
    }
    | {"dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html"}
    | {"legend", "li", "main", "menu", "nav", "ol", "p", "pre", "section", "summary", "table", "ul"}
    | {"head"}
    | set(_HEADINGS)
)
_WHOLE = frozenset({"table", "pre", "ul", "ol"})
_MAX_TABLE_ROWS = 5_000


def parse_html(text: str | bytes) -> Any:
    """Its root element; None where there is none. Never asks the network."""
    encoding = None
    if isinstance(text, str):
        # lxml refuses text that names an encoding, which text no longer has.
        text, encoding = text.encode("utf-8", "replace"), "utf-8"
    parser = html.HTMLParser(
        encoding=encoding, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        return html.document_fromstring(text, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None


def add_html(root: Any, writer: Writer) -> None:
    """Headings, lists, tables, code and paragraphs in the order in which they stand."""
    for kind, level, text in _blocks(root):
        writer.add(text, kind, level)


def language_of(root: Any) -> str:
    return str(root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or "")


def title_of(root: Any) -> str:
    return one_line(root.findtext(".//title") or "")


def _blocks(root: Any) -> Iterator[tuple[str, int, str]]:
    """An explicit stack: hostile pages are nested deeper than Python's."""
    words: list[str] = []

    def flush() -> Iterator[tuple[str, int, str]]:
        text = one_line("".join(words))
        words.clear()
        if text:
            yield "text", 0, text

    for what, element in _walk(root):
        tag = element.tag
        if what == "tail":
            words.append(element.tail)
        elif what == "whole":
            yield from flush()
            yield from _whole(element)
        elif what == "start":
            if tag in _BREAKS:
                yield from flush()
            if tag == "br":
                words.append(" ")
            words.append(element.text or "")
        elif tag in _HEADINGS:
            heading = one_line("".join(words))
            words.clear()
            if heading:
                yield "heading", _HEADINGS[tag], heading
        elif tag in _BREAKS:
            yield from flush()
    yield from flush()


def _walk(root: Any) -> Iterator[tuple[str, Any]]:
    """("start" | "end" | "whole" | "tail", element) in the order of the text."""
    stack: list[tuple[str, Any]] = [("start", root)]
    while stack:
        what, element = stack.pop()
        if what == "start" and (not isinstance(element.tag, str) or _is_hidden(element)):
            continue
        if what == "start" and element.tag in _WHOLE:
            what = "whole"
        yield what, element
        if what == "start":
            stack.append(("end", element))
            for child in reversed(element):
                if child.tail:
                    stack.append(("tail", child))
                stack.append(("start", child))


def _is_hidden(element: Any) -> bool:
    style = (element.get("style") or "").replace(" ", "").lower()
    return (
        element.tag in _LEFT_OUT
        or element.get("hidden") is not None
        or "display:none" in style
        or "visibility:hidden" in style
    )


def _whole(element: Any) -> Iterator[tuple[str, int, str]]:
    if element.tag == "pre":
        yield "code", 0, _text(element, keep_lines=True)
    elif element.tag == "table":
        yield from _table(element)
    else:
        yield "list", 0, "\n".join(_items(element))


def _table(element: Any) -> Iterator[tuple[str, int, str]]:
    """One that holds others only lays them out, and so does one of a single column."""
    rows = []
    if element.find(".//table") is None:
        for row in element.iter("tr"):
            rows.append([_text(cell) for cell in row if cell.tag in ("td", "th")])
            if len(rows) == _MAX_TABLE_ROWS:
                break
    if max(map(len, rows), default=0) > 1:
        caption = element.find("caption")
        if caption is not None:
            yield "text", 0, _text(caption)
        yield "table", 0, table(rows)
    else:
        for cell in element.iter("td", "th", "caption"):
            if cell.find(".//td") is None:
                yield "text", 0, _text(cell)


def _items(listing: Any) -> Iterator[str]:
    """A line for each item, indented by depth; numbers where the list has them."""
    stack: list[tuple[int, int, Any]] = [(0, 0, listing)]
    while stack:
        depth, number, element = stack.pop()
        if element.tag == "li":
            text = _text(element, without=("ul", "ol"))
            if text:
                yield "  " * min(depth - 1, 8) + (f"{number}. " if number else "- ") + text
        inner = []
        is_ordered, count = element.tag == "ol", 0
        for child in element:
            if isinstance(child.tag, str) and not _is_hidden(child):
                count += child.tag == "li"
                deeper = depth + (child.tag == "li")
                inner.append((deeper, count if is_ordered and child.tag == "li" else 0, child))
        stack += reversed(inner)


def _text(element: Any, *, keep_lines: bool = False, without: tuple[str, ...] = ()) -> str:
    words = [element.text or ""]
    stack = [("start", child) for child in reversed(element)]
    while stack:
        what, child = stack.pop()
        if what == "tail":
            words.append(child.tail or "")
            continue
        stack.append(("tail", child))
        if not isinstance(child.tag, str) or _is_hidden(child) or child.tag in without:
            continue
        if child.tag in _BREAKS or child.tag in ("br", "td", "th"):
            words.append("\n" if keep_lines else " ")
        words.append(child.text or "")
        stack += [("start", inner) for inner in reversed(child)]
    text = "".join(words)
    return text if keep_lines else one_line(text)
