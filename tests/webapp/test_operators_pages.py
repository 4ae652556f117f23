"""What operators read names what there is: variables of the environment, and metrics."""

import os
import re
import subprocess
import sys

from tests.sites import ROOT
from webapp.directory_settings import _ENDINGS, _START

_FLOORS = ("webapp", "chat", "inference", "retrieval", "moderation")
_VARIABLE = (
    "(?:VITRINE|SMTP|LOG|HF|SECRET|ALLOWED|TRUSTED|DRAIN|DATABASE|REDIS)_[A-Z_]+"
    "|DATA_DIR|HOST|PORT|DEBUG"
)
# Their names are put together of a provider's.
_OF_PROVIDERS = re.compile("VITRINE_(?:GOOGLE|GITHUB|MICROSOFT|OIDC_NAME)_[A-Z_]+")


def source(*floors: str) -> str:
    return "\n".join(path.read_text() for one in floors for path in (ROOT / one).rglob("*.py"))


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def test_configuration_names_the_variables_that_are_read_and_no_others() -> None:
    code, text = source(*_FLOORS), page("configuration.md")
    read = set(re.findall(rf'(?:env_[a-z]+|environ\.get)\(\s*"({_VARIABLE})"', code))
    named = set(re.findall(rf"`({_VARIABLE})`", text))
    assert len(read) > 60
    assert read - named - {f"{_START}URL"} == set()
    assert {ending for ending in _ENDINGS if f"`{ending}`" not in text} == set()
    others = {name.removesuffix("_FILE") for name in named if not _OF_PROVIDERS.fullmatch(name)}
    assert {name for name in others if f'"{name}"' not in code} <= {
        _START + ending for ending in _ENDINGS
    }


def test_whatever_can_be_set_is_asked_for_before_anything_else_is_told_apart() -> None:
    """`serve` says of the others that nothing reads them."""
    code = "import django; django.setup(); from webapp import env; print(*env._asked)"
    switched_on = {
        "VITRINE_LDAP_URL": "ldaps://example.org",
        "VITRINE_LDAP_USER_BASE": "dc=example",
        "VITRINE_WEB_SEARCH": "searxng:https://search.example.org",
        "VITRINE_MODERATION": "server:https://judge.example.org/v1",
    }
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "webapp.settings"} | switched_on
    asked = subprocess.check_output(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, text=True
    )
    named = set(re.findall("`(VITRINE_[A-Z_]+)`", page("configuration.md")))
    assert {n for n in named - set(asked.split()) if not _OF_PROVIDERS.fullmatch(n)} == set()


def test_monitoring_names_the_metrics_that_are_told_and_no_others() -> None:
    made = r'(?:Counter|Histogram|GaugeMetricFamily|_gauge)\(\s*"(vitrine_[a-z_]+)"'
    told = set(re.findall(made, source("webapp", "chat")))
    named = set(re.findall(r"`(vitrine_[a-z_]+)", page("monitoring.md")))
    assert told == {name.removesuffix("_total") for name in named}
