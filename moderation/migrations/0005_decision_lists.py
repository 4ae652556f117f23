"""Lists of decisions are read in the order of an index, however many decisions there are.

Not built concurrently: processes that start at the same time wait for this one by a lock of the database,
and a concurrent build would wait for them.
"""

from django.db import migrations, models
from django.db.models import Case, F, Q, When

_WAITS_SINCE = Case(When(review="open", then=F("created_at")))


class Migration(migrations.Migration):
    dependencies = [("moderation", "0004_text_hashes")]

    operations = [
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                _WAITS_SINCE.asc(nulls_last=True), F("created_at").desc(), name="decision_queue"
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=Q(action__in=("redact", "ask", "block"), is_dry_run=False),
                fields=["owner", "-created_at"],
                name="decision_stopped",
            ),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(
                condition=Q(review="overturned"), fields=["owner"], name="decision_overturned"
            ),
        ),
    ]
