"""Who may make an account, in the admin console. Who changed it is in the log of this console."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.admin import ModelAdmin

from webapp.models import SignupRule
from webapp.signup_policy import policy_of_domains


class SignupRuleForm(forms.ModelForm):
    class Meta:
        model = SignupRule
        fields = ("mode", "domains")
        help_texts = {
            "mode": "Invitations work as well, but where it is nobody.",
            "domains": "As in example.org,example.com; their sub-domains are not meant.",
        }

    def clean(self) -> dict[str, Any]:
        """As strict as VITRINE_SIGNUP is read at the start."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("mode") != "domain":
            return values | {"domains": []}
        if "domains" in self.errors:
            return values
        try:
            policy = policy_of_domains(",".join(values["domains"]))
            policy.check(
                has_mail=bool(settings.SMTP_HOST), has_providers=bool(settings.SIGN_IN_PROVIDERS)
            )
        except ValueError as error:
            self.add_error("domains", str(error))
            return values
        return values | {"domains": list(policy.domains)}


@admin.register(SignupRule)
class SignupRuleAdmin(ModelAdmin):  # type: ignore[misc]
    """One row at most, so that its page stands for the list."""

    form = SignupRuleForm

    def get_fieldsets(self, request: HttpRequest, obj: SignupRule | None = None) -> Any:
        said = settings.SIGNUP
        by_environment = ", ".join([SignupRule.Modes(said.mode).label, *said.domains])
        holds = "holds again once this is deleted" if obj else "holds until something is saved here"
        description = f"VITRINE_SIGNUP ({by_environment}) {holds}."
        return [(None, {"fields": ("mode", "domains"), "description": description})]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and not SignupRule.objects.exists()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if self.has_add_permission(request):
            return redirect("admin:webapp_signuprule_add")
        row = SignupRule.objects.first()
        if row is not None and self.has_view_or_change_permission(request, row):
            return redirect("admin:webapp_signuprule_change", row.pk)
        response: HttpResponse = super().changelist_view(request, extra_context)
        return response

    def save_model(self, request: HttpRequest, obj: SignupRule, form: Any, change: bool) -> None:
        # Of two who add it at the same time the later one counts.
        values = {"mode": obj.mode, "domains": obj.domains}
        SignupRule.objects.update_or_create(pk=obj.pk, defaults=values)
