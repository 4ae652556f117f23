"""Policies, what was decided by them, strikes, and rules of one's own.

What was decided about somebody's texts is theirs to see, and the system's. Policies and rules are
everybody's to read: an answer of anybody is judged by them.
"""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import moderation.policy_models
import uuid
from typing import Any
from django.conf import settings
from django.db import migrations, models

from moderation.first_policy import FIRST_POLICY

_RIGHTS = """
    current_setting('vitrine.scope', true) = 'system'
    OR current_setting('vitrine.scope', true) = 'user:' || owner_id
"""
_PROTECT = "".join(
    f"""
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY owners ON {table} USING ({_RIGHTS}) WITH CHECK ({_RIGHTS});
"""
    for table in ("moderation_decision", "moderation_strike")
)
_EXPOSE = "".join(
    f"""
DROP POLICY owners ON {table};
ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY;
ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;
"""
    for table in ("moderation_decision", "moderation_strike")
)


def add_first_policy(apps: Any, schema_editor: Any) -> None:
    """What a new installation does: it blocks little, and notes what it finds."""
    policy = apps.get_model("moderation", "ModerationPolicy").objects.create(
        name="Everybody", order=1000, content=FIRST_POLICY
    )
    snapshot = {
        "name": policy.name,
        "order": policy.order,
        "is_enabled": True,
        "is_dry_run": False,
        "tiers": [],
        "groups": [],
        "model_names": ["*"],
        "key_prefixes": [],
        "content": FIRST_POLICY,
    }
    apps.get_model("moderation", "PolicyVersion").objects.create(
        policy_id=policy.pk, name=policy.name, number=1, change="created", snapshot=snapshot
    )


def remove_first_policy(apps: Any, schema_editor: Any) -> None:
    apps.get_model("moderation", "ModerationPolicy").objects.filter(name="Everybody").delete()


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='EditableRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True)),
                ('category', models.CharField(choices=[('harassment', 'harassment: Insults, bullies or degrades a person.'), ('harassment/threatening', 'harassment/threatening: Harasses a person and threatens violence or serious harm.'), ('hate', 'hate: Expresses or incites hate of people for what they are: origin, religion, sex …'), ('hate/threatening', 'hate/threatening: Hates people for what they are and threatens or calls for violence.'), ('illicit', 'illicit: Asks for, or gives, help with crime or with harming others.'), ('illicit/violent', 'illicit/violent: Asks for, or gives, help with violence or with getting weapons.'), ('self-harm', 'self-harm: Promotes, encourages or depicts suicide, self-injury or eating disorders.'), ('self-harm/intent', 'self-harm/intent: The writer wants to hurt or kill themself.'), ('self-harm/instructions', 'self-harm/instructions: Asks for, or gives, ways to hurt or kill oneself.'), ('sexual', 'sexual: Meant to arouse, or offers sexual services; not education or health.'), ('sexual/minors', 'sexual/minors: Sexual content that includes somebody under eighteen.'), ('violence', 'violence: Wishes, threatens, celebrates or depicts death, injury or violence.'), ('violence/graphic', 'violence/graphic: Depicts death, injury or violence in gory detail.'), ('prompt_injection', 'prompt_injection: Tries to replace the instructions of the assistant, or to read them.'), ('jailbreak', 'jailbreak: Tries to talk the assistant out of its rules on harmful content.'), ('secrets', 'secrets: Holds keys, passwords or tokens.'), ('personal_data', 'personal_data: Holds data that identify a person: numbers of cards, accounts, phones …')], max_length=40)),
                ('pattern', models.TextField(max_length=1000)),
                ('probability', models.FloatField(default=1.0, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1.0)])),
                ('must_match', models.TextField(blank=True, help_text='One in each line.', verbose_name='texts that match')),
                ('must_not_match', models.TextField(blank=True, help_text='One in each line.', verbose_name='texts that do not match')),
                ('is_enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name': 'moderation rule',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='ModerationPolicy',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80, unique=True)),
                ('order', models.PositiveIntegerField(default=100)),
                ('is_enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('is_dry_run', models.BooleanField(default=False, verbose_name='dry run')),
                ('tiers', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, default=list, size=None)),
                ('groups', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=150), blank=True, default=list, size=None)),
                ('model_names', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), blank=True, default=moderation.policy_models.every_model, size=None)),
                ('key_prefixes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), blank=True, default=list, size=None)),
                ('content', models.JSONField(blank=True, default=dict, validators=[moderation.policy_models._check_content])),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name': 'moderation policy',
                'verbose_name_plural': 'moderation policies',
                'ordering': ['order', 'name'],
            },
        ),
        migrations.CreateModel(
            name='Decision',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('stage', models.CharField(max_length=16)),
                ('source', models.CharField(max_length=16)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('api_key_id', models.BigIntegerField(blank=True, null=True)),
                ('policy_id', models.UUIDField(blank=True, null=True)),
                ('policy_name', models.CharField(blank=True, max_length=80)),
                ('policy_version', models.PositiveIntegerField(default=0)),
                ('is_dry_run', models.BooleanField(default=False)),
                ('action', models.CharField(max_length=16)),
                ('reasons', models.JSONField(default=list)),
                ('scores', models.JSONField(default=dict)),
                ('failed', models.JSONField(default=list)),
                ('conversation_id', models.UUIDField(blank=True, null=True)),
                ('message_id', models.UUIDField(blank=True, null=True)),
                ('run_id', models.CharField(blank=True, max_length=64)),
                ('text', models.TextField(blank=True)),
                ('review', models.CharField(blank=True, choices=[('open', 'waits for a decision'), ('upheld', 'was right'), ('overturned', 'was wrong')], max_length=16)),
                ('appeal', models.TextField(blank=True)),
                ('appealed_at', models.DateTimeField(blank=True, null=True)),
                ('reviewed_at', models.DateTimeField(blank=True, null=True)),
                ('notes', models.TextField(blank=True)),
                ('labels', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), blank=True, null=True, size=None)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='moderation_decisions', to=settings.AUTH_USER_MODEL)),
                ('reviewer', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='PolicyVersion',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('policy_id', models.UUIDField(db_index=True)),
                ('name', models.CharField(max_length=80)),
                ('number', models.PositiveIntegerField()),
                ('change', models.CharField(max_length=16)),
                ('snapshot', models.JSONField()),
                ('note', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Strike',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('points', models.FloatField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('lifted_at', models.DateTimeField(blank=True, null=True)),
                ('decision', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='strike', to='moderation.decision')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='strikes', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddIndex(
            model_name='decision',
            index=models.Index(fields=['owner', '-created_at'], name='decision_of_owner'),
        ),
        migrations.AddIndex(
            model_name='decision',
            index=models.Index(fields=['-created_at'], name='decision_recent'),
        ),
        migrations.AddIndex(
            model_name='decision',
            index=models.Index(condition=models.Q(('review', 'open')), fields=['created_at'], name='decision_open'),
        ),
        migrations.AddConstraint(
            model_name='policyversion',
            constraint=models.UniqueConstraint(fields=('policy_id', 'number', 'change'), name='policy_version_once'),
        ),
        migrations.AddIndex(
            model_name='strike',
            index=models.Index(condition=models.Q(('lifted_at', None)), fields=['owner', 'created_at'], name='strike_counting'),
        ),
        migrations.RunSQL(_PROTECT, _EXPOSE),
        migrations.RunPython(add_first_policy, remove_first_policy),
    ]
