from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0026_chosen_models"),
    ]

    operations = [
        migrations.AddField(
            model_name="chatimport",
            name="attempts",
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
