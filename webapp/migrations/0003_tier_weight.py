"""What a tier weighs where the engine is busy."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models

from webapp.tiers import TIERS


def set_weights(apps, schema_editor):
    """Rows of before get what new installations have."""
    tiers = apps.get_model("webapp", "Tier").objects
    for tier in TIERS:
        tiers.filter(slug=tier["slug"]).update(weight=tier["weight"])


class Migration(migrations.Migration):
    dependencies = [("webapp", "0002_tiers")]

    operations = [
        migrations.AddField(
            model_name="tier",
            name="weight",
            field=models.FloatField(
                default=1.0, validators=[MinValueValidator(0.01), MaxValueValidator(1000)]
            ),
        ),
        migrations.AddConstraint(
            model_name="tier",
            constraint=models.CheckConstraint(
                condition=models.Q(("weight__gt", 0)), name="tier_weight_positive"
            ),
        ),
        migrations.RunPython(set_weights, migrations.RunPython.noop),
    ]
