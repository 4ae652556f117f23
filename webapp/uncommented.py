"""Our scripts and styles as browsers get them: without the lines that hold nothing but comments.

These are a quarter of what a page loads, compressed. Each leaves an empty line behind, so that a test
can compare line by line. Libraries stay as they are: their comments hold their licences.
"""

import re

_BLOCK = re.compile(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^[ \t]*//.*$", re.MULTILINE)


def uncommented(text: str, *, is_script: bool) -> str:
    """A comment that shares a line with code stays; so would one within a template's text be taken
    for a comment, and a test looks that there is none."""
    text = _BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
    return _LINE.sub("", text) if is_script else text
