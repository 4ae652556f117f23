"""Style sheets turn around with the page: they name no left and no right."""

import re
from pathlib import Path

import pytest

CSS = Path(__file__).parents[2] / "static" / "css"
PHYSICAL = re.compile(
    r"(?:^|[\s;{])((?:margin|padding|border|inset|scroll-margin|scroll-padding)-(?:left|right)"
    r"|(?:left|right|float|border-(?:top|bottom)-(?:left|right)-radius)\s*:"
    r"|text-align:\s*(?:left|right))",
    re.MULTILINE,
)


@pytest.mark.parametrize("path", sorted(CSS.rglob("*.css")), ids=lambda path: path.stem)
def test_sides_are_named_by_the_direction_of_the_text(path: Path) -> None:
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    assert PHYSICAL.findall(text) == []


def test_a_side_is_found() -> None:
    for rule in ("a { margin-left: 0 }", "a {\n  left: 0;\n}", "b{text-align: right}"):
        assert PHYSICAL.search(rule), rule
    assert not PHYSICAL.search("a { inset-inline-start: 0; justify-content: left-over }")
