"""Of whom a second step is asked, in the admin console."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest

from webapp.models import SecondStepRule
from webapp.one_row_admin import OneRowAdmin
from webapp.second_step_rule import forget_rule


@admin.register(SecondStepRule)
class SecondStepRuleAdmin(OneRowAdmin):
    fields = ("whom",)

    def by_environment(self) -> str:
        return f"VITRINE_SECOND_STEP ({SecondStepRule.Whom(settings.SECOND_STEP).label})"

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs["help_texts"] = {
            "whom": "Who has none comes no further than to the page where it is added, also who is"
            " signed in now. People of a sign-in provider or a directory are asked there; API keys go"
            " on working."
        }
        return super().get_form(request, obj, **kwargs)

    def forget(self) -> None:
        forget_rule()
