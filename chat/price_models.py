"""What models cost, as the operator has set it in the console."""

from decimal import Decimal
from typing import Any

from django.db import models

from chat.prices import Price


def _amount(**options: Any) -> Any:
    return models.DecimalField(max_digits=18, decimal_places=8, default=Decimal(0), **options)


class ModelPrice(models.Model):
    """Of one model, in VITRINE_CURRENCY and by the sorts of `Price`, which it is in place of
    VITRINE_PRICES. Zeros make a model free.

    What has been entered in the ledger stays as it was.
    """

    model = models.CharField(max_length=200, primary_key=True)
    prompt = _amount()
    cached = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)
    completion = _amount()
    engine_s = _amount()

    class Meta:
        verbose_name = "price"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(prompt__gte=0, completion__gte=0, engine_s__gte=0)
                & (models.Q(cached=None) | models.Q(cached__gte=0)),
                name="price_not_negative",
                violation_error_message="A price is not below zero.",
            )
        ]

    def __str__(self) -> str:
        return self.model

    @property
    def price(self) -> Price:
        return Price(self.prompt, self.completion, self.cached, self.engine_s)
