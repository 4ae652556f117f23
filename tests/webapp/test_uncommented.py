"""What browsers get of our scripts and styles: all of the code, on the same lines."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sites import ROOT
from webapp.uncommented import uncommented

SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
LITERALS = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/(?:\\.|\[(?:\\.|[^\]])*\]|[^/\\])+/|\\`"""
)
"""Of one line, in which a ` begins and ends nothing."""
STYLES = sorted((ROOT / "static" / "css").rglob("*.css"))

COMPILE = """
  const { readdirSync, readFileSync } = require("node:fs");
  const { SourceTextModule } = require("node:vm");
  const [folder] = process.argv.slice(1);
  const names = readdirSync(folder);
  const read = (name) => readFileSync(`${folder}/${name}`, "utf8");
  for (const name of names) new SourceTextModule(read(name), { identifier: name });
  console.log(names.length);
"""


@pytest.mark.parametrize(
    ("text", "lean"),
    [
        ("// @ts-check\nlet a; // kept\n", "\nlet a; // kept\n"),
        ("/** One. */\nf();\n  /* Two,\n   * of two. */\n", "\nf();\n\n\n"),
        ("let a = 1; /* kept */\n", "let a = 1; /* kept */\n"),
        ("/* kept */ let a = 1;\nlet b = 2; /* kept */\n", None),
        ("fetch('http://a');\nlet c = a //\n/ 2;\n", None),
    ],
)
def test_only_lines_of_nothing_but_comments_go(text: str, lean: str | None) -> None:
    assert uncommented(text, is_script=True) == (text if lean is None else lean)


def test_styles_know_blocks_alone() -> None:
    assert uncommented("/* One. */\na {}\n// b {}\n", is_script=False) == "\na {}\n// b {}\n"


@pytest.mark.parametrize("path", [*SCRIPTS, *STYLES], ids=lambda path: path.name)
def test_no_line_of_code_is_lost(path: Path) -> None:
    source = path.read_text().splitlines()
    lean = uncommented(path.read_text(), is_script=path.suffix == ".js").splitlines()
    assert len(lean) == len(source)
    num_marks = 0
    for before, after in zip(source, lean, strict=True):
        if before != after:
            assert after == ""
            assert num_marks % 2 == 0, f"within a template's text: {before}"
            assert re.match(r"\s*(//|/\*|\*)", before) or "*/" in before or before[:2] == " *", (
                before
            )
        num_marks += LITERALS.sub("", after).count("`")


def test_scripts_are_still_scripts(tmp_path: Path) -> None:
    node = shutil.which("node") or next(iter((ROOT / ".venv").rglob("playwright/driver/node")))
    for path in SCRIPTS:
        (tmp_path / path.name).write_text(uncommented(path.read_text(), is_script=True))
    command = [node, "--experimental-vm-modules", "-e", COMPILE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(SCRIPTS) > 100
