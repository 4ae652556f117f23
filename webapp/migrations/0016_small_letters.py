"""Addresses in small letters, as sign-in looks for them."""

from typing import Any

from django.db import migrations
from django.db.models.functions import Lower


def write_small(apps: Any, schema_editor: Any) -> None:
    """Of accounts no two become one: none differ in capitals alone. Of allauth's rows two of a user do,
    and one that another account's owner has confirmed counts as theirs."""
    User = apps.get_model("webapp", "User")
    EmailAddress = apps.get_model("account", "EmailAddress")
    User.objects.exclude(email=Lower("email")).update(email=Lower("email"))
    for row in EmailAddress.objects.exclude(email=Lower("email")):
        same = EmailAddress.objects.filter(email=row.email.lower())
        twin = same.filter(user=row.user_id).first()
        kept = twin or row
        if twin is not None:
            row.delete()
        is_anothers = same.filter(verified=True).exclude(user=row.user_id).exists()
        kept.verified = (kept.verified or row.verified) and not is_anothers
        kept.primary = kept.primary or row.primary
        kept.email = row.email.lower()
        kept.save()


class Migration(migrations.Migration):
    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("webapp", "0015_scim_deleted"),
    ]

    operations = [migrations.RunPython(write_small, migrations.RunPython.noop)]
