"""A web page: its article without menus and footers, or all of its text where no article is found."""

from typing import Any

from retrieval.parsing.formats.markdown import add_markdown
from retrieval.parsing.markup import add_html, language_of, parse_html, title_of
from retrieval.parsing.source import Source
from retrieval.parsing.writer import Writer, too_long

# Below, trafilatura has taken a footer for the article, or there is none.
_SMALLEST_SHARE = 0.2
_SHORT_CHARS = 1_000  # too little to tell an article from a menu
_LARGEST_CHARS = 2_000_000  # of an article, with its markup: a longer page would take minutes
_HIDDEN = ["//*[@hidden]", "//*[contains(translate(@style, ' ', ''), 'display:none')]"]


def read(source: Source, writer: Writer) -> None:
    root = parse_html(source.text)
    if root is None:
        return
    writer.title, writer.language = title_of(root), language_of(root)
    num_chars = _visible_chars(root)
    if num_chars > source.limits.max_chars:
        raise too_long(source.limits)  # now, and not when all of it has been laid out
    has_article = num_chars > _SHORT_CHARS and len(source.text) < _LARGEST_CHARS
    article = _article(source.text) if has_article else ""
    if len(article) > _SMALLEST_SHARE * num_chars:
        add_markdown(article, writer)
    else:
        writer.page()
        add_html(root, writer)


def _article(text: str) -> str:
    """As Markdown; "" if there is none. Without the date, whose search takes longer than the rest."""
    from trafilatura import extract

    try:
        found = extract(
            text,
            output_format="markdown",
            include_comments=False,
            include_tables=True,
            include_formatting=True,
            favor_recall=True,
            with_metadata=False,
            prune_xpath=_HIDDEN,
        )
    except (ValueError, TypeError, AttributeError, IndexError, KeyError):
        return ""  # a page that its rules did not expect
    return found or ""


def _visible_chars(root: Any) -> int:
    """About how many: runs of white space count as one."""
    hidden = sum(
        len(element.text_content()) for element in root.iter("script", "style", "noscript")
    )
    return max(0, len(" ".join(root.text_content().split())) - hidden)
