"""`python -m benchmarks.clients`: OpenAI's clients and others', unmodified, against a live server.

Each runs in an environment of its own, made for the run in a temporary folder, at the versions below.
The exit code is the number of checks that failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.table import Row, machine, save, show
from tests.sites import Site, email_of

_HERE = Path(__file__).parent
_DOCS = _HERE.parents[1] / "docs" / "api.md"
_PYTHON = (
    "openai==2.54.0",
    "langchain-openai==1.7.3",
    "litellm==1.106.2",
    "mcp",  # LiteLLM imports it for tools without requiring it
    "llm==0.32.1",
)
_NODE = "openai@6.49.0"
_SCRIPTS = {
    "openai-python": "openai_python.py",
    "openai-node": "openai_node.mjs",
    "langchain-openai": "langchain_client.py",
    "LiteLLM": "litellm_client.py",
    "llm": "llm_command.py",
}
_EXAMPLES = {"openai-node": ("js", "example.mjs"), "langchain-openai": ("py", "example.py")}
"""What docs/api.md shows of a client: the language of its block, and a file to run it from."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clients", nargs="*", help=f"all of them without: {', '.join(_SCRIPTS)}")
    names = parser.parse_args().clients or list(_SCRIPTS)
    if unknown := set(names) - set(_SCRIPTS):
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    with (
        tempfile.TemporaryDirectory(prefix="vitrine-clients-") as folder,
        Site(Path(folder) / "site", None, VITRINE_PRELOAD="true") as site,
    ):
        environment = os.environ | _environment(site)
        rows = [
            {"client": name, **row}
            for name in names
            for row in (
                *_run(_command(name, Path(folder)), environment),
                *_run_example(name, Path(folder), environment),
            )
        ]
    show("Clients against a live server", rows)
    save("clients", {"machine": machine(), "clients": rows})
    sys.exit(min(sum(row["result"] != "ok" for row in rows), 99))


def _environment(site: Site) -> dict[str, str]:
    site.set_up().close()
    site.sign_up("caller").close()
    site.execute("UPDATE webapp_tier SET requests_per_minute = NULL, concurrent_runs = 1000")
    key = site.create_api_key(email_of("caller"))
    limited = site.create_api_key(email_of("caller"))
    site.execute(
        "UPDATE webapp_apikey SET requests_per_minute = 0 WHERE prefix = %s",
        limited[: len("vt_") + 8],
    )
    return {
        "BASE_URL": f"{site.url}/v1",
        "KEY": key,
        "LIMITED_KEY": limited,
        "MODEL": "vitrine-small",
        "EMBEDDING_MODEL": "all-minilm-l6-v2",
    }


def _command(name: str, folder: Path) -> list[str]:
    """The script's command line, in an environment that is there afterwards."""
    script = _SCRIPTS[name]
    if script.endswith(".mjs"):
        place = folder / "node"
        if not place.exists():
            place.mkdir()
            npm = shutil.which("npm") or sys.exit("npm is not installed: no openai-node")
            subprocess.run([npm, "install", "--silent", _NODE], cwd=place, check=True)
        shutil.copy(_HERE / script, place)  # a module is looked for from where the file lies
        return ["node", str(place / script)]
    place = folder / "python"
    if not place.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        pip = [place / "bin" / "pip", "install", "--quiet", *_PYTHON]
        subprocess.run(pip, check=True)
    return [str(place / "bin" / "python"), str(_HERE / script)]


def _run(command: list[str], environment: dict[str, str]) -> list[Row]:
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=600, check=True
    )
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [
        {
            "check": one["check"],
            "result": "ok" if one["ok"] else "FAILED",
            "seen": " ".join(one["seen"].split())[:60],
        }
        for one in told
    ]


def _run_example(name: str, folder: Path, environment: dict[str, str]) -> list[Row]:
    if name not in _EXAMPLES:
        return []
    language, file_name = _EXAMPLES[name]
    [text] = re.findall(rf"^```{language}\n(.*?)^```", _DOCS.read_text(), re.MULTILINE | re.DOTALL)
    url = environment["BASE_URL"].removesuffix("/v1")
    text = text.replace("http://127.0.0.1:8000", url).replace("MODEL", environment["MODEL"])
    is_python = language == "py"
    script = folder / ("python" if is_python else "node") / file_name
    script.write_text(f"import os\n\nKEY = os.environ['KEY']\n{text}" if is_python else text)
    program = str(folder / "python" / "bin" / "python") if is_python else "node"
    done = subprocess.run(
        [program, str(script)], env=environment, capture_output=True, text=True, timeout=600
    )
    said = done.stdout.strip()
    result = "ok" if said and not done.returncode else "FAILED"
    return [{"check": "docs/api.md", "result": result, "seen": (said or done.stderr)[-60:]}]


if __name__ == "__main__":
    main()
