"""Whatever the APIs are sent, nothing of it is an error of ours.

schemathesis makes requests out of the descriptions, good ones and bad ones, every run others; its seed
is printed with what it finds.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.sites import Site, SiteMaker, email_of

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def fuzzed(make_site: SiteMaker, small_models: str) -> Iterator[Site]:
    environment = {"VITRINE_MODELS": small_models, "VITRINE_DEFAULT_MODEL": "short"}
    with make_site(**environment) as site:
        site.set_up().close()
        site.execute("UPDATE webapp_tier SET requests_per_minute = NULL")
        yield site


def fuzz(site: Site, description: str, *options: str) -> None:
    seed = random.SystemRandom().randrange(2**31)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{site.url}/{description}"]
    usual = ["--checks", "not_a_server_error", "--phases", "examples,fuzzing"]
    usual += ["--max-examples", "3", "--seed", str(seed), "--request-timeout", "60"]
    usual += ["--suppress-health-check", "all", "--warnings", "off", "--continue-on-failure"]
    done = subprocess.run(
        [*command, *usual, *options],
        env=os.environ | {"NO_COLOR": "1"},
        cwd=site.data_dir,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout


@pytest.mark.parametrize("description", ["api/openapi.json", "v1/openapi.json"])
def test_with_a_key(fuzzed: Site, description: str) -> None:
    name = description.partition("/")[0]
    fuzzed.sign_up(name).close()
    key = fuzzed.create_api_key(email_of(name))
    fuzz(fuzzed, description, "-H", f"Authorization: Bearer {key}")


def test_in_a_browser(fuzzed: Site) -> None:
    """What no key may do, keys among it."""
    with closing(fuzzed.sign_up("browser")) as client:
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        token = client.cookies["vitrine_csrf"]
        headers = [f"Cookie: {cookies}", f"X-CSRFToken: {token}", f"Origin: {fuzzed.url}"]
        options = [word for header in headers for word in ("-H", header)]
        fuzz(fuzzed, "api/openapi.json", "--include-path-regex", "keys|usage|auth", *options)
