"""Modules in chunks: each once, all that it exports, nothing run that the page does not want."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.sites import ROOT
from webapp.chunks import Joined, OddModule, read_module
from webapp.page_files import ENTRIES, SHEETS
from webapp.uncommented import uncommented

SOURCES = {
    path.name: uncommented(path.read_text(), is_script=True)
    for path in (ROOT / "static" / "js").glob("*.js")
}
RUN = """
  const { readFileSync } = require("node:fs");
  const { SourceTextModule, SyntheticModule, createContext } = require("node:vm");
  const [folder, ...names] = process.argv.slice(1);
  const ran = [];
  const context = createContext({ ran });
  const known = new Map();
  const load = (name) => {
    const text = readFileSync(`${folder}/${name}`, "utf8");
    if (!known.has(name)) known.set(name, new SourceTextModule(text, { identifier: name, context }));
    return known.get(name);
  };
  const link = (specifier) => {
    if (specifier.startsWith("./")) return load(specifier.slice(2));
    const give = function () { this.setExport("default", specifier); };
    return new SyntheticModule(["default"], give, { context });
  };
  const run = async (name) => {
    const module = load(name);
    if (module.status === "unlinked") await module.link(link);
    await module.evaluate();
    return Object.keys(module.namespace).filter((key) => !key.startsWith("$")).sort();
  };
  (async () => {
    const exported = {};
    for (const name of names) exported[name] = await run(name);
    console.log(JSON.stringify({ ran, exported }));
  })();
"""
COMPILE = """
  const { readdirSync, readFileSync } = require("node:fs");
  const { SourceTextModule } = require("node:vm");
  const [folder] = process.argv.slice(1);
  const names = new Set(readdirSync(folder));
  const found = {};
  for (const name of names) {
    const module = new SourceTextModule(readFileSync(`${folder}/${name}`, "utf8"), { identifier: name });
    found[name] = module.dependencySpecifiers;
  }
  console.log(JSON.stringify(found));
"""
SHOP = {
    "page.js": """
import { price as cost } from "./price.js";
import "./effect.js";
ran.push(`page ${cost(2)}`);
const later = () => import("./later.js");
""",
    "other.js": """
import { price } from "./price.js";
ran.push(`other ${price(1)}`);
""",
    "price.js": """
import vat from "#vendor/vat.js";
ran.push("price");
export function price(n) { return `${n} ${vat}`; }
export const NONE = 0;
export class Coin {}
""",
    "effect.js": """
ran.push("effect");
export {};
""",
    "later.js": """
import {
  Coin,
} from "./price.js";
import { deep } from "./deep.js";
ran.push(typeof Coin, deep);
export async function buy() {}
""",
    "deep.js": """
ran.push("deep");
export const deep = 7;
""",
    "nobody.js": "// is reached by no page",
}


def in_node(script: str, files: dict[str, str], folder: Path, *arguments: str) -> Any:
    """What a script says of files, in JSON."""
    import playwright

    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    node = Path(playwright.__file__).parent / "driver" / "node"
    told = subprocess.run(
        [node, "--experimental-vm-modules", "--no-warnings", "-e", script, folder, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_what_runs_and_what_is_exported_is_the_same(tmp_path: Path) -> None:
    joined = Joined(SHOP, ["page.js", "other.js"])
    for names in (["page.js", "later.js"], ["other.js"], ["later.js"]):
        plain = in_node(RUN, SHOP, tmp_path / "plain", *names)
        assert in_node(RUN, joined.files(), tmp_path / "joined", *names) == plain
    assert plain["ran"] == ["price", "deep", "function", 7]
    assert joined.joined == {"price.js", "effect.js", "deep.js"}
    assert joined.needed_by("page.js") == ["_price.js"]


def test_a_page_runs_nothing_that_another_alone_wants(tmp_path: Path) -> None:
    """Both modules belong to the first page; the second wants but one of them, and later."""
    two = 'import { both } from "./both.js";\nimport { alone } from "./alone.js";\nran.push(both, alone)'
    texts = {
        "first.js": two,
        "second.js": 'const later = () => import("./both.js");',
        "both.js": 'ran.push("both");\nexport const both = 1;',
        "alone.js": 'ran.push("alone");\nexport const alone = 2;',
    }
    files = Joined(texts, ["first.js", "second.js"]).files()
    assert in_node(RUN, files, tmp_path, "second.js", "both.js")["ran"] == ["both"]
    assert in_node(RUN, files, tmp_path, "first.js")["ran"] == ["both", "alone", 1, 2]


def test_every_module_of_ours_is_in_one_chunk_with_all_that_it_exports() -> None:
    joined = Joined(SOURCES, ENTRIES)
    names = [module.name for chunk in joined.chunks for module in chunk.modules]
    assert len(names) == len(set(names)) > 150
    files = joined.files()
    for chunk in joined.chunks:
        for module in chunk.modules:
            own = "$" + re.sub(r"\W", "_", module.name.removesuffix(".js"))
            assert files[chunk.name].count(f"export const {own} = {{}};") == 1
            declared = re.findall(
                r"^export (?:async )?(?:function\*?|class|const) (\w+)", SOURCES[module.name], re.M
            )
            assert list(module.exports) == declared
    for entry in ENTRIES:
        assert entry in files
        assert set(joined.needed_by(entry)) <= files.keys()
    assert len(joined.needed_by("chat.js")) < 20


def test_the_chunks_of_ours_compile_and_find_each_other(tmp_path: Path) -> None:
    files = Joined(SOURCES, ENTRIES).files()
    for name, specifiers in in_node(COMPILE, files, tmp_path).items():
        for specifier in specifiers:
            assert specifier.removeprefix("./") in files or specifier.startswith("#vendor/"), name


@pytest.mark.parametrize(
    "text",
    [
        "export default 1;\n",
        "export let a = 1;\n",
        'export { a } from "./a.js";\n',
        'export * from "./a.js";\n',
        'import * as a from "./a.js";\n',
        "import { a } from './a.js';\n",
        "export const { a } = b;\n",
    ],
)
def test_a_form_that_is_not_known_is_no_guess(text: str) -> None:
    with pytest.raises(OddModule, match=r"m\.js"):
        read_module("m.js", text)


def test_circles_and_what_is_not_there_are_told() -> None:
    circle = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    with pytest.raises(OddModule, match="by way of others"):
        Joined(circle, ["a.js"])
    with pytest.raises(KeyError, match=r"b\.js"):
        Joined({"a.js": circle["a.js"]}, ["a.js"])


def test_pages_name_what_is_there() -> None:
    named = set()
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text()
        named |= set(re.findall(r'\{% module "([\w-]+\.js)" %\}', text))
        assert 'type="module" src' not in text, path.name
        for sheet in re.findall(r'\{% sheets "(\w+)" %\}', text):
            assert sheet in SHEETS
    assert named == set(ENTRIES)
    sheets = [sheet for parts in SHEETS.values() for sheet in parts]
    assert len(sheets) == len(set(sheets))
    for sheet in sheets:
        text = (ROOT / "static" / sheet).read_text()
        # A joined sheet lies in css/: what one in a folder below names would lie elsewhere.
        assert sheet.count("/") == 1 or "url(" not in text, sheet
        assert "@import" not in text, sheet
