"""What models cost, in the admin console. Who changed it is in the log of this console."""

from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin

from chat.models import ModelPrice
from chat.service import model_states


class ModelPriceForm(forms.ModelForm):
    class Meta:
        model = ModelPrice
        fields = "__all__"
        labels = {
            "prompt": f"{settings.CURRENCY} for a million tokens read",
            "cached": f"{settings.CURRENCY} for a million of them from the cache",
            "completion": f"{settings.CURRENCY} for a million tokens written",
            "engine_s": f"{settings.CURRENCY} for a second of the engine",
        }
        help_texts = {
            "model": "Its name, as people choose it.",
            "cached": "Empty: as any others that are read.",
        }

    def clean_model(self) -> str:
        name: str = self.cleaned_data["model"].strip()
        return name


@admin.register(ModelPrice)
class ModelPriceAdmin(ModelAdmin):  # type: ignore[misc]
    """Answers keep the price of their moment."""

    nothing_here = "No model has a price here."
    form = ModelPriceForm
    list_display = ("model", "num_read", "num_cached", "num_written", "num_engine")
    search_fields = ("model",)
    ordering = ("model",)
    list_before_template = "admin/prices_of_environment.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("model",) if obj else ()  # a price of another name is another price

    def save_model(self, request: HttpRequest, obj: ModelPrice, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.model not in {state.spec.name for state in model_states()}:
            words = (
                f"No model is called {obj.model} at present: its price counts once there is one."
            )
            messages.warning(request, words)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        of_rows = set(ModelPrice.objects.values_list("pk", flat=True))
        others = {name: p for name, p in settings.PRICES.items() if name not in of_rows}
        context = {"currency": settings.CURRENCY, "prices_of_environment": others}
        response: HttpResponse = super().changelist_view(request, context | (extra_context or {}))
        return response

    @admin.display(description="million tokens read", ordering="prompt")
    def num_read(self, row: ModelPrice) -> str:
        return _plain(row.prompt)

    @admin.display(description="million from the cache", ordering="cached")
    def num_cached(self, row: ModelPrice) -> str:
        return _plain(row.prompt if row.cached is None else row.cached)

    @admin.display(description="million written", ordering="completion")
    def num_written(self, row: ModelPrice) -> str:
        return _plain(row.completion)

    @admin.display(description="second of the engine", ordering="engine_s")
    def num_engine(self, row: ModelPrice) -> str:
        return _plain(row.engine_s)


def _plain(amount: Decimal) -> str:
    """Without zeros at the end."""
    return f"{amount.normalize():f}"
