"""How much of a model's context a tier may fill."""

from django.core.validators import MinValueValidator
from django.db import migrations, models

from webapp.tiers import TIERS


def set_contexts(apps, schema_editor):
    """Rows of before get what new installations have."""
    tiers = apps.get_model("webapp", "Tier").objects
    for tier in TIERS:
        tiers.filter(slug=tier["slug"]).update(context_tokens=tier.get("context_tokens"))


class Migration(migrations.Migration):
    dependencies = [("webapp", "0003_tier_weight")]

    operations = [
        migrations.AddField(
            model_name="tier",
            name="context_tokens",
            field=models.PositiveIntegerField(
                null=True, blank=True, validators=[MinValueValidator(1024)]
            ),
        ),
        migrations.RunPython(set_contexts, migrations.RunPython.noop),
    ]
