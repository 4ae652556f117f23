"""What answers have cost, and what those under way may still cost."""

from django.conf import settings
from django.db import models


class Usage(models.Model):
    """The ledger: what a user's answers took of one model in one day (UTC), by way of one key or none.

    Keys outlive nothing here: a deleted one leaves its number. `cost` is in VITRINE_CURRENCY, by the
    price of the moment; `engine_ms` is the answers' share of our own engine's time.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="usage"
    )
    day = models.DateField()
    model = models.CharField(max_length=200)
    api_key_id = models.BigIntegerField(null=True)
    num_requests = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    engine_ms = models.FloatField(default=0.0)
    cost = models.DecimalField(max_digits=20, decimal_places=8, default=0)

    class Meta:
        verbose_name_plural = "usage"
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "day", "model", "api_key_id"],
                name="usage_once_a_day",
                nulls_distinct=False,
            )
        ]
        # Of the console, which looks at everybody's: the newest days, and the names of models.
        indexes = [
            models.Index(fields=["-day", "owner", "model", "-id"], name="usage_recent"),
            models.Index(fields=["model"], name="usage_of_model"),
        ]

    def __str__(self) -> str:
        return f"{self.model} on {self.day}"


class Reservation(models.Model):
    """What an answer under way may take at most, held until it is settled.

    Its id is the run's. What dies without a word lets go at `expires_at`, which is set anew for what no
    Generation stands for (concurrency.py). With `alive_until` that is an answer, written until then at
    least.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    api_key_id = models.BigIntegerField(null=True)
    tokens = models.PositiveBigIntegerField()
    cost = models.DecimalField(max_digits=20, decimal_places=8, default=0)
    expires_at = models.DateTimeField()
    alive_until = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["owner"], name="reservation_of_owner")]

    def __str__(self) -> str:
        return f"reservation {self.id}"
