"""The schema and the code agree."""

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection
from django.db.migrations.recorder import MigrationRecorder

from webapp.models import Tier
from webapp.serving.prepare import _problem
from webapp.tiers import ensure_tiers

pytestmark = pytest.mark.django_db


def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_what_a_newer_version_has_migrated_is_refused() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("chat", "0001_by_another_name")
    recorder.record_applied("allauth", "9999_not_ours")
    assert _problem() is None
    recorder.record_applied("chat", "0999_later")
    assert "newer version of Vitrine (chat 0999_later)." in str(_problem())


def test_the_system_checks_are_clean() -> None:
    call_command("check", fail_level="WARNING", databases=["default"])


def test_tiers_that_an_administrator_changed_stay_changed() -> None:
    Tier.objects.filter(slug="free").update(concurrent_runs=1)
    Tier.objects.filter(slug="pro").delete()
    ensure_tiers(Tier)
    assert Tier.objects.get(slug="free").concurrent_runs == 1
    assert Tier.objects.filter(slug="pro").exists()


def test_who_pays_more_weighs_more() -> None:
    weights = dict(Tier.objects.values_list("slug", "weight"))
    assert 0 < weights["free"] < weights["pro"] < weights["enterprise"]
    with pytest.raises(IntegrityError):
        Tier.objects.filter(slug="free").update(weight=0)
