"""Prices of the console, by model."""

from decimal import Decimal
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0013_api_rows'),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelPrice',
            fields=[
                ('model', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('prompt', models.DecimalField(decimal_places=8, default=Decimal('0'), max_digits=18)),
                ('cached', models.DecimalField(blank=True, decimal_places=8, max_digits=18, null=True)),
                ('completion', models.DecimalField(decimal_places=8, default=Decimal('0'), max_digits=18)),
                ('engine_s', models.DecimalField(decimal_places=8, default=Decimal('0'), max_digits=18)),
            ],
            options={
                'verbose_name': 'price',
                'constraints': [models.CheckConstraint(condition=models.Q(('completion__gte', 0), ('engine_s__gte', 0), ('prompt__gte', 0), models.Q(('cached', None), ('cached__gte', 0), _connector='OR')), name='price_not_negative', violation_error_message='A price is not below zero.')],
            },
        ),
    ]
