"""What is found of chats by their words."""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models


class SearchEntry(models.Model):
    """What can be found of a message, or of a conversation's title (then `message` is null).

    Triggers write it in the transaction that writes the text (migration `search`), and the database
    deletes it with its message. A long message has several, each of one `part`; `terms` also name
    the owner, so that the policy that hides other people's rows is a search of the same index.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    conversation = models.ForeignKey(
        "chat.Conversation", on_delete=models.DO_NOTHING, related_name="+", db_constraint=False
    )
    message = models.ForeignKey(
        "chat.Message",
        on_delete=models.DO_NOTHING,
        null=True,
        related_name="+",
        db_constraint=False,
    )
    part = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    terms = SearchVectorField()

    class Meta:
        indexes = [
            GinIndex(fields=["terms"], name="searchentry_terms", fastupdate=False),
            models.Index(
                fields=["owner", "-created_at", "-id"],
                name="searchentry_messages",
                condition=models.Q(message__isnull=False),
            ),
            models.Index(
                fields=["owner", "-created_at", "-id"],
                name="searchentry_titles",
                condition=models.Q(message=None),
            ),
        ]

    def __str__(self) -> str:
        return f"search entry {self.pk}"
