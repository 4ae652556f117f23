"""Policies and rules of a test's site, written as the console writes them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from tests.sites import Site, SiteMaker

PHRASE = "crimson heron"
"""What the rule `planted` finds."""


@contextmanager
def judged_site(
    make_site: SiteMaker, models: str, *, pattern: str = PHRASE, **environment: str
) -> Iterator[Site]:
    """A running site of these models, `far` by default, with the built-in classifiers and a rule."""
    usual = {"VITRINE_DEFAULT_MODEL": "far", "VITRINE_MODERATION": "builtin"}
    with make_site(VITRINE_MODELS=models, **usual | environment) as site:
        site.set_up().close()
        site.execute("UPDATE webapp_tier SET requests_per_minute = NULL, concurrent_runs = 50")
        plant_rule(site, pattern=pattern)
        yield site


def set_policy(site: Site, content: dict[str, Any], **fields: Any) -> None:
    """The only policy from now on, in place of all others."""
    site.execute("DELETE FROM moderation_moderationpolicy")
    add_policy(site, content, **fields)


def add_policy(site: Site, content: dict[str, Any], **fields: Any) -> None:
    values: dict[str, Any] = {
        "id": uuid4(),
        "name": "House rules",
        "order": 1,
        "is_enabled": True,
        "is_dry_run": False,
        "tiers": [],
        "groups": [],
        "model_names": ["*"],
        "key_prefixes": [],
        "version": 1,
        **fields,
    }
    names = ", ".join(f'"{name}"' for name in values)
    marks = ", ".join("%s" for _ in values)
    site.execute(
        f"INSERT INTO moderation_moderationpolicy ({names}, content, updated_at)"
        f" VALUES ({marks}, %s, now())",
        *values.values(),
        json.dumps(content),
    )


def plant_rule(site: Site, category: str = "illicit", pattern: str = PHRASE) -> None:
    site.execute("DELETE FROM moderation_editablerule")
    site.execute(
        "INSERT INTO moderation_editablerule (name, category, pattern, probability, must_match,"
        " must_not_match, is_enabled, updated_at)"
        " VALUES ('planted', %s, %s, 1, '', '', true, now())",
        category,
        pattern,
    )
