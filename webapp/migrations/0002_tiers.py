"""The four tiers. Rows that exist are left alone: an administrator may have changed them."""

from django.db import migrations

from webapp.tiers import ensure_tiers


def add_tiers(apps, schema_editor):
    ensure_tiers(apps.get_model("webapp", "Tier"))


class Migration(migrations.Migration):
    dependencies = [("webapp", "0001_people")]

    operations = [migrations.RunPython(add_tiers, migrations.RunPython.noop)]
