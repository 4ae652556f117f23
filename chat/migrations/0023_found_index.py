from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0022_brought_messages"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(found__isnull=False),
                fields=["conversation"],
                name="message_found",
            ),
        ),
    ]
