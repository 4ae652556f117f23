"""The command `llm`: our models named in its `extra-openai-models.yaml`."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import BASE_URL, KEY, LIMITED_KEY, MODEL, check, run

folder = Path(tempfile.mkdtemp(prefix="llm-"))
(folder / "extra-openai-models.yaml").write_text(
    f"- model_id: here\n  model_name: {MODEL}\n  api_base: {BASE_URL}\n"
    "  api_key_name: vitrine\n  supports_schema: true\n  supports_tools: true\n"
    f"- model_id: nothing\n  model_name: nothing\n  api_base: {BASE_URL}\n"
    "  api_key_name: vitrine\n"
)


def llm(*arguments: str, key: str = KEY) -> subprocess.CompletedProcess[str]:
    """Run it with the model `here`."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("llm")), "prompt", "--key", key, *arguments],
        env=os.environ | {"LLM_USER_PATH": str(folder)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def said(*arguments: str) -> str:
    done = llm("-m", "here", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    return done.stdout.strip()


def refused(text: str, *arguments: str, key: str = KEY) -> str:
    done = llm(*arguments, key=key)
    assert done.returncode != 0
    assert text in done.stderr, done.stderr
    return done.stderr.strip()


@check("answer")
def answer() -> str:
    return said("--no-stream", "What is 2 plus 2?")


@check("streaming")
def streaming() -> str:
    return said("What is 2 plus 2?")


@check("conversation")
def goes_on() -> str:
    return said("--continue", "And 3 plus 3?")


@check("tools")
def takes_a_tool() -> str:
    return said("--functions", "def weather(city: str) -> str:\n    return 'sunny'", "Hello")


@check("structured output")
def structured() -> str:
    found = json.loads(said("--schema", "number int", "What is 2 plus 2?"))
    assert isinstance(found["number"], int)
    return json.dumps(found)


@check("wrong key")
def wrong_key() -> str:
    return refused("401", "-m", "here", "Hello", key="vt_wrong")


@check("no such model")
def no_model() -> str:
    return refused("404", "-m", "nothing", "Hello")


@check("over the limit")
def limited() -> str:
    return refused("429", "-m", "here", "Hello", key=LIMITED_KEY)


run()
