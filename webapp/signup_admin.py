"""Who may make an account, in the admin console."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin

from webapp.models import SignupRule
from webapp.one_row_admin import OneRowAdmin
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
class SignupRuleAdmin(OneRowAdmin):
    form = SignupRuleForm
    fields = ("mode", "domains")
    conditional_fields = {"domains": "mode == 'domain'"}

    def by_environment(self) -> str:
        said = settings.SIGNUP
        return f"VITRINE_SIGNUP ({', '.join([SignupRule.Modes(said.mode).label, *said.domains])})"
