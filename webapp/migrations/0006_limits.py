"""What tiers, groups and keys allow, and how much of it.

A key's scope was "v1" for all of the OpenAI-compatible API; it is now said for what.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
import webapp.models
from django.db import migrations, models

from webapp.tiers import TIERS

_NEW_LIMITS = ("requests_per_minute", "tokens_per_day", "tokens_per_month", "upload_mib")
_V1 = ["chat", "embeddings", "files", "knowledge"]


def set_limits(apps, schema_editor):
    """Rows of before get what new installations have."""
    tiers = apps.get_model("webapp", "Tier").objects
    for tier in TIERS:
        limits = {name: tier.get(name) for name in _NEW_LIMITS}
        tiers.filter(slug=tier["slug"]).update(**limits)


def name_scopes(apps, schema_editor):
    for key in apps.get_model("webapp", "ApiKey").objects.filter(scopes__contains=["v1"]):
        key.scopes = [scope for scope in key.scopes if scope != "v1"] + _V1
        key.save(update_fields=["scopes"])


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('webapp', '0005_user_language'),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='model_names',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), default=webapp.models.every_model, size=None),
        ),
        migrations.AddField(
            model_name='apikey',
            name='requests_per_minute',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='apikey',
            name='tokens_per_day',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='tier',
            name='api_priority',
            field=models.CharField(choices=[('interactive', 'with the people who chat'), ('api', 'behind the people who chat'), ('background', 'behind everybody')], default='api', max_length=16),
        ),
        migrations.AddField(
            model_name='tier',
            name='cost_per_month',
            field=models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True),
        ),
        migrations.AddField(
            model_name='tier',
            name='features',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('tools', 'tools in answers'), ('files', "files of one's own"), ('api_keys', 'API keys')], max_length=16), blank=True, default=webapp.models.every_feature, size=None),
        ),
        migrations.AddField(
            model_name='tier',
            name='model_names',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), blank=True, default=webapp.models.every_model, size=None),
        ),
        migrations.AddField(
            model_name='tier',
            name='requests_per_minute',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='tier',
            name='tokens_per_day',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='tier',
            name='tokens_per_month',
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='tier',
            name='upload_mib',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='cost_per_month',
            field=models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True, verbose_name="cost per month, in place of the tier's"),
        ),
        migrations.CreateModel(
            name='GroupGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model_names', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), blank=True, default=list, size=None)),
                ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='grant', to='auth.group')),
            ],
        ),
        migrations.RunPython(set_limits, migrations.RunPython.noop),
        migrations.RunPython(name_scopes, migrations.RunPython.noop),
    ]
