"""What the directory of an organisation knows of accounts and groups, and what it has done."""

import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('webapp', '0011_refreshed_at'),
    ]

    operations = [
        migrations.CreateModel(
            name='ScimChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('action', models.CharField(choices=[('made', 'Made'), ('found', 'Found'), ('changed', 'Changed'), ('disabled', 'Disabled'), ('enabled', 'Enabled'), ('deleted', 'Deleted')], max_length=16)),
                ('kind', models.CharField(choices=[('person', 'Person'), ('group', 'Group')], max_length=16)),
                ('object_id', models.BigIntegerField()),
                ('name', models.CharField(max_length=254)),
                ('change', models.TextField(blank=True)),
            ],
            options={
                'verbose_name': 'change by the directory',
                'verbose_name_plural': 'changes by the directory',
            },
        ),
        migrations.CreateModel(
            name='ScimGroup',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(blank=True, db_index=True, max_length=255)),
                ('is_made', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='scim', to='auth.group')),
            ],
        ),
        migrations.CreateModel(
            name='ScimPerson',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user_name', models.CharField(max_length=254)),
                ('external_id', models.CharField(blank=True, db_index=True, max_length=255)),
                ('given_name', models.CharField(blank=True, max_length=120)),
                ('family_name', models.CharField(blank=True, max_length=120)),
                ('is_made', models.BooleanField(default=False)),
                ('is_disabled', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='scim', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('user_name'), name='scim_user_name_any_case')],
            },
        ),
    ]
