"""Who came in, who tried to, and what opens an account."""

from django.db import models


class SecurityEvent(models.Model):
    """A line of the trail (webapp/security_events.py), the system's alone (row-level security).

    `account` is whom it is about and `actor` who did it, by their numbers, which stay when they are
    gone. `login` is a keyed hash of what was typed; `how` says by which means, or what became of the
    thing. A row with a `minute` stands for `num_more` of its kind in it, which have none of their own.
    """

    class Kind(models.TextChoices):
        SIGN_IN = "sign_in", "signed in"
        SIGN_IN_FAILED = "sign_in_failed", "sign-in failed"
        REFUSED = "refused", "too many attempts"
        PASSWORD = "password", "password"
        ADDRESS = "address", "e-mail address"
        SECOND_STEP = "second_step", "second step"
        CONNECTION = "connection", "connected account"
        API_KEY = "api_key", "API key"
        SHARE = "share", "share link"
        EXPORT = "export", "export of all data"
        DELETION = "deletion", "account deleted"
        RETENTION = "retention", "old chats deleted"
        SUSPENSION = "suspension", "account suspended"
        LET_IN = "let_in", "account let in again"
        RIGHTS = "rights", "rights"

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    account = models.BigIntegerField(null=True, db_index=True)
    actor = models.BigIntegerField(null=True)
    login = models.CharField(max_length=16, blank=True, db_index=True)
    address = models.GenericIPAddressField(null=True)
    how = models.CharField(max_length=200, blank=True)
    minute = models.DateTimeField(null=True)
    num_more = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "account", "address", "minute"],
                condition=models.Q(minute__isnull=False),
                nulls_distinct=False,
                name="security_event_rest_of_minute",
            )
        ]

    def __str__(self) -> str:
        return f"security event {self.pk}"
