"""Collections of documents, and who may read and write them."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from retrieval.ids import uuid7


class Collection(models.Model):
    """Documents that are shared, and searched, together.

    `version` counts up with every change of what can be found in it. `num_chunks` and `num_terms` are
    those of live passages: what ranking by words needs to know of the whole (lexical.py).
    `is_for_chats`: its owner's own, for files that are attached to messages. `caches_answers`: a
    question about it that somebody has asked is answered as it was (chat/answer_cache.py). `metadata`
    is what a program has noted of it. With `expires_after_days` its documents go when no program has
    used it for so long (expiry.py).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True, max_length=2000)
    is_for_chats = models.BooleanField(default=False)
    caches_answers = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    num_chunks = models.PositiveIntegerField(default=0)
    num_terms = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)
    metadata = models.JSONField(default=dict)
    expires_after_days = models.PositiveSmallIntegerField(null=True)
    last_active_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["owner", "-updated_at"], name="collection_recent")]
        constraints = [
            models.UniqueConstraint(
                fields=["owner"],
                condition=models.Q(is_for_chats=True),
                name="one_collection_for_chats",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Access(models.Model):
    """Somebody else than the owner who may read a collection, or write as well: a person, a group, or
    with neither everybody here. The owner is repeated, who sees the rows whoever they are for."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="accesses")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    group = models.ForeignKey("auth.Group", on_delete=models.CASCADE, null=True, related_name="+")
    may_write = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "user", "group"],
                nulls_distinct=False,
                name="one_access_each",
            ),
            models.CheckConstraint(
                condition=models.Q(user=None) | models.Q(group=None), name="access_of_one_sort"
            ),
        ]

    def __str__(self) -> str:
        whom = f"user {self.user_id}" if self.user_id else f"group {self.group_id}"
        return f"{whom if self.user_id or self.group_id else 'everybody'} in {self.collection_id}"
