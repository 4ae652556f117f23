"""The ledger of what answers took, and what those under way hold of a budget."""

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_rls = import_module("chat.migrations.0002_row_level_security")


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0011_append_events'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Reservation',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('api_key_id', models.BigIntegerField(null=True)),
                ('tokens', models.PositiveBigIntegerField()),
                ('cost', models.DecimalField(decimal_places=8, default=0, max_digits=20)),
                ('expires_at', models.DateTimeField()),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['owner'], name='reservation_of_owner')],
            },
        ),
        migrations.CreateModel(
            name='Usage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('model', models.CharField(max_length=200)),
                ('api_key_id', models.BigIntegerField(null=True)),
                ('num_requests', models.PositiveBigIntegerField(default=0)),
                ('prompt_tokens', models.PositiveBigIntegerField(default=0)),
                ('cached_tokens', models.PositiveBigIntegerField(default=0)),
                ('completion_tokens', models.PositiveBigIntegerField(default=0)),
                ('engine_ms', models.FloatField(default=0.0)),
                ('cost', models.DecimalField(decimal_places=8, default=0, max_digits=20)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='usage', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'usage',
                'constraints': [models.UniqueConstraint(fields=('owner', 'day', 'model', 'api_key_id'), name='usage_once_a_day', nulls_distinct=False)],
            },
        ),
        *(_rls._protect(table, _rls._VISIBLE) for table in ("chat_usage", "chat_reservation")),
    ]
