"""The trail of sign-ins and of what opens accounts, which is the system's alone."""

from django.db import migrations, models

_SYSTEM = "current_setting('vitrine.scope', true) = 'system'"


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0012_scim'),
    ]

    operations = [
        migrations.CreateModel(
            name='SecurityEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('kind', models.CharField(choices=[('sign_in', 'signed in'), ('sign_in_failed', 'sign-in failed'), ('refused', 'too many attempts'), ('password', 'password'), ('address', 'e-mail address'), ('second_step', 'second step'), ('connection', 'connected account'), ('api_key', 'API key'), ('share', 'share link'), ('export', 'export of all data'), ('deletion', 'account deleted'), ('suspension', 'account suspended'), ('let_in', 'account let in again'), ('rights', 'rights')], max_length=16)),
                ('account', models.BigIntegerField(db_index=True, null=True)),
                ('actor', models.BigIntegerField(null=True)),
                ('login', models.CharField(blank=True, db_index=True, max_length=16)),
                ('address', models.GenericIPAddressField(null=True)),
                ('how', models.CharField(blank=True, max_length=200)),
                ('minute', models.DateTimeField(null=True)),
                ('num_more', models.PositiveIntegerField(default=0)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('minute__isnull', False)), fields=('kind', 'account', 'address', 'minute'), name='security_event_rest_of_minute', nulls_distinct=False)],
            },
        ),
        migrations.RunSQL(
            sql=f"""
                ALTER TABLE webapp_securityevent ENABLE ROW LEVEL SECURITY;
                ALTER TABLE webapp_securityevent FORCE ROW LEVEL SECURITY;
                CREATE POLICY system_only ON webapp_securityevent USING ({_SYSTEM}) WITH CHECK ({_SYSTEM});
            """,
            reverse_sql="DROP POLICY system_only ON webapp_securityevent;",
        ),
    ]
