"""Accounts that strikes have closed: their owners' to see, and the system's."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


_RIGHTS = """
    current_setting('vitrine.scope', true) = 'system'
    OR current_setting('vitrine.scope', true) = 'user:' || owner_id
"""
_PROTECT = f"""
ALTER TABLE moderation_suspension ENABLE ROW LEVEL SECURITY;
ALTER TABLE moderation_suspension FORCE ROW LEVEL SECURITY;
CREATE POLICY owners ON moderation_suspension USING ({_RIGHTS}) WITH CHECK ({_RIGHTS});
"""


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0001_moderation'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Suspension',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('points', models.FloatField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('appeal', models.TextField(blank=True)),
                ('appealed_at', models.DateTimeField(blank=True, null=True)),
                ('reviewed_at', models.DateTimeField(blank=True, null=True)),
                ('notes', models.TextField(blank=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='strike_suspensions', to=settings.AUTH_USER_MODEL)),
                ('reviewer', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'suspension',
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('owner',), name='suspension_once')],
            },
        ),
        migrations.RunSQL(_PROTECT, "DROP POLICY owners ON moderation_suspension;"),
    ]
