"""Every example of docs/api.md, run as it stands: shell by the shell, Python by Python."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.sites import PASSWORD, ROOT, Site, email_of

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[str]:
    found = _BLOCK.findall((ROOT / "docs" / "api.md").read_text())
    return [text for name, text in found if name == language]


def _for(site: Site, text: str) -> str:
    """Tools are for a model that calls them."""
    assert "MODEL" in text
    model = "vitrine-small" if "tools" in text else "endless"
    return text.replace("http://127.0.0.1:8000", site.url).replace("MODEL", model)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("command", [text for text in _blocks("sh") if "MODEL" in text])
def test_a_command(chat_site: Site, key: str, command: str) -> None:
    done = subprocess.run(
        ["sh", "-c", _for(chat_site, command)],
        env={**os.environ, "KEY": key},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer: Any = json.loads(done.stdout)
    assert "error" not in answer
    assert any(answer.get(name) for name in ("choices", "content", "tokens", "run"))


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_commands_of_tokens(chat_site: Site, tmp_path: Path) -> None:
    """One after the other; the first brings the token that the second sends."""
    chat_site.sign_up("teller").close()
    (block,) = [text for text in _blocks("sh") if "MODEL" not in text]
    commands = (
        block.replace("http://127.0.0.1:8000", chat_site.url).replace("\\\n", "").splitlines()
    )
    who = {"EMAIL": email_of("teller"), "PASSWORD": PASSWORD, "TOKEN": ""}
    answers = []
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env={**os.environ, **who},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        answers.append(json.loads(done.stdout or "{}"))
        who["TOKEN"] = who["TOKEN"] or answers[0]["access_token"]
    token, models, refreshed, revoked = answers
    assert token["expires_in"] == refreshed["expires_in"] == 900
    assert models["models"]
    assert refreshed["access_token"] != token["access_token"]
    assert revoked == {}
    dead = chat_site.visitor().get(
        "/api/models", headers={"Authorization": f"Bearer {refreshed['access_token']}"}
    )
    assert dead.status_code == 401


def test_the_python(chat_site: Site, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, as one reads them."""
    names: dict[str, Any] = {"KEY": key}
    for text in _blocks("python"):
        exec(_for(chat_site, text), names)
        assert capsys.readouterr().out.strip()
    names["client"].close()


def test_there_are_examples_of_both() -> None:
    assert len(_blocks("sh")) >= 4
    assert len(_blocks("python")) >= 2
