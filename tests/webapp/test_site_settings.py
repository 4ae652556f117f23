"""Sites that tests start are configured as everybody's, but for how passwords are hashed."""

from types import ModuleType
from typing import Any

import webapp.settings
from tests import site_settings


def told_by(module: ModuleType) -> dict[str, Any]:
    return {
        name: value for name, value in vars(module).items() if name.isupper() and name[0] != "_"
    }


def test_nothing_differs_but_the_hash() -> None:
    told = told_by(site_settings)
    assert "MD5" in told.pop("PASSWORD_HASHERS")[0]
    assert told == told_by(webapp.settings)
