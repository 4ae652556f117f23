"""Where somebody is signed in, which is nobody else's business."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_OWN = """
    current_setting('vitrine.scope', true) = 'system'
    OR current_setting('vitrine.scope', true) = 'user:' || user_id
"""


class Migration(migrations.Migration):
    dependencies = [("webapp", "0007_invitation")]

    operations = [
        migrations.CreateModel(
            name="SignIn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("session_key", models.CharField(editable=False, max_length=40, unique=True)),
                ("address", models.GenericIPAddressField(null=True)),
                ("user_agent", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("last_seen_at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sign_ins",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            sql=f"""
                ALTER TABLE webapp_signin ENABLE ROW LEVEL SECURITY;
                ALTER TABLE webapp_signin FORCE ROW LEVEL SECURITY;
                CREATE POLICY own_rows ON webapp_signin USING ({_OWN}) WITH CHECK ({_OWN});
            """,
            reverse_sql="""
                DROP POLICY own_rows ON webapp_signin;
                ALTER TABLE webapp_signin NO FORCE ROW LEVEL SECURITY;
                ALTER TABLE webapp_signin DISABLE ROW LEVEL SECURITY;
            """,
        ),
    ]
