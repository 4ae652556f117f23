"""What the organisation's directory knows of accounts and groups, and what it has done here."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models.functions import Lower


class ScimPerson(models.Model):
    """An account that the directory manages (webapp/scim/people.py).

    `is_made` says that the directory made it, and did not only find it here; `is_disabled` that the
    directory, and not an administrator, has suspended it. With `deleted_at` the directory has deleted
    it, and it waits, unseen by the directory, for an administrator to hand over what it shares.
    `user_name` is the directory's name for the person, often the address; `external_id` is the
    directory's own key.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="scim"
    )
    user_name = models.CharField(max_length=254)
    external_id = models.CharField(max_length=255, blank=True, db_index=True)
    given_name = models.CharField(max_length=120, blank=True)
    family_name = models.CharField(max_length=120, blank=True)
    is_made = models.BooleanField(default=False)
    is_disabled = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(Lower("user_name"), name="scim_user_name_any_case")]

    def __str__(self) -> str:
        return self.user_name


class ScimGroup(models.Model):
    """A group that the directory fills. It renames and deletes only those that it made."""

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="scim")
    external_id = models.CharField(max_length=255, blank=True, db_index=True)
    is_made = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"group {self.group_id}"


class ScimChange(models.Model):
    """The directory's line in the log of who changed what. Stays when what it tells of is gone.

    Django's LogEntry names a user, which the directory is not.
    """

    class Action(models.TextChoices):
        MADE = "made"
        FOUND = "found"
        CHANGED = "changed"
        DISABLED = "disabled"
        ENABLED = "enabled"
        DELETED = "deleted"

    class Kind(models.TextChoices):
        PERSON = "person"
        GROUP = "group"

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    action = models.CharField(max_length=16, choices=Action.choices)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    object_id = models.BigIntegerField()
    name = models.CharField(max_length=254)
    change = models.TextField(blank=True)

    class Meta:
        verbose_name = "change by the directory"
        verbose_name_plural = "changes by the directory"

    def __str__(self) -> str:
        return f"{self.name} {self.action}"
