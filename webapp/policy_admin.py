"""Moderation policies in the admin console: what they say, every version of it, and what a change would
have changed. Who changed what is in their versions."""

import json
from collections.abc import Collection
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from moderation.categories import CATEGORIES
from moderation.models import EditableRule, ModerationPolicy, PolicyVersion
from moderation.policies import STAGES, BadPolicy, parsed
from moderation.policy_store import NameTaken, delete_policy, restore, save_policy
from webapp.models import ApiKey, Tier
from webapp.policy_replay import replay
from webapp.read_only_admin import ReadOnlyAdmin
from webapp.tenancy import as_system

_AREA = UnfoldAdminTextareaWidget(
    attrs={"rows": 24, "spellcheck": "false", "class": "font-mono", "dir": "ltr"}
)

_NAMES = UnfoldAdminTextareaWidget(attrs={"rows": 1})
_FOR_WHOM = ("tiers", "groups", "model_names", "key_prefixes")


class PrettyJson(json.JSONEncoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"indent": 2, "ensure_ascii": False})


class PolicyForm(forms.ModelForm):
    note = forms.CharField(
        required=False,
        max_length=500,
        help_text="Why; it is kept with the version.",
        widget=UnfoldAdminTextInputWidget,
    )

    class Meta:
        model = ModerationPolicy
        exclude = ()
        field_classes = {"content": forms.JSONField}
        widgets = {"content": _AREA, **dict.fromkeys(_FOR_WHOM, _NAMES)}
        help_texts = {
            "order": "Of the policies that fit, the one with the lowest decides.",
            "is_dry_run": "It decides nothing, and writes down what it would have done.",
            "tiers": "Their names in addresses (free, pro …), between commas; empty: all.",
            "groups": "Names, between commas; empty: all.",
            "model_names": "Names or patterns, between commas; * stands for anything.",
            "key_prefixes": (
                "The first 11 characters of API keys, between commas; empty: people and all keys."
            ),
            "content": (
                "Stage (input, output, documents, tools) → category → action (note, redact, ask,"
                " review, block) → from which probability on; on_failure, partial_output, strikes."
                f" Categories: {', '.join(CATEGORIES)}."
                " note writes it down; redact takes it out; ask lets who wrote it decide; review shows"
                " it to a person; block stops it."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in _FOR_WHOM:
            if name in self.fields:  # of arrays, the admin makes fields with boxes of its own
                self.fields[name].widget = _NAMES
        if isinstance(content := self.fields.get("content"), forms.JSONField):
            content.encoder = PrettyJson

    def clean_content(self) -> Any:
        return self.cleaned_data["content"] or {}

    def clean_tiers(self) -> list[str]:
        return self._known("tiers", Tier.objects.filter(slug__in=self._named("tiers")), "slug")

    def clean_groups(self) -> list[str]:
        directory = settings.DIRECTORY
        later = set(directory.groups.values()) if directory is not None else set()
        rows = Group.objects.filter(name__in=self._named("groups"))
        return self._known("groups", rows, "name", also=later)

    def clean_key_prefixes(self) -> list[str]:
        with as_system():  # keys of all users
            rows = ApiKey.objects.filter(prefix__in=self._named("key_prefixes"))
            return self._known("key_prefixes", rows, "prefix")

    def _named(self, field: str) -> list[str]:
        return self.cleaned_data[field] or []

    def _known(
        self, field: str, rows: QuerySet[Any], column: str, *, also: Collection[str] = ()
    ) -> list[str]:
        """A policy for what there is not would be for nobody, and not say so. What it named before may
        be gone since, and `also` are made by who comes with them."""
        known = {*rows.values_list(column, flat=True), *getattr(self.instance, field), *also}
        unknown = sorted(set(self._named(field)) - known)
        if unknown:
            raise forms.ValidationError(f"There is none of this name: {', '.join(unknown)}.")
        return self._named(field)


@admin.register(ModerationPolicy)
class PolicyAdmin(ModelAdmin):  # type: ignore[misc]
    nothing_here = "There are no policies: nothing is stopped."
    form = PolicyForm
    list_display = ("name", "order", "is_enabled", "is_dry_run", "who", "version", "updated_at")
    ordering = ("order", "name")
    change_form_outer_after_template = "admin/policy_versions.html"
    fieldsets = (
        (None, {"fields": ("name", "order", "is_enabled", "is_dry_run")}),
        ("For whom", {"fields": ("tiers", "groups", "model_names", "key_prefixes")}),
        ("What it says", {"fields": ("content", "note")}),
    )

    @admin.display(description="for")
    def who(self, row: ModerationPolicy) -> str:
        parts = [*row.tiers, *row.groups, *row.key_prefixes]
        models = [name for name in row.model_names if name != "*"]
        return ", ".join([*parts, *models]) or "everybody"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        save_policy(obj, request.user, form.cleaned_data["note"])

    def delete_model(self, request: HttpRequest, obj: ModerationPolicy) -> None:
        delete_policy(obj, request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ModerationPolicy]) -> None:
        for policy in queryset:
            delete_policy(policy, request.user)

    # --- versions and the replay ------------------------------------------------------------------

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **more: Any) -> Any:
        context = {**(more.pop("extra_context", None) or {}), "policy_id": object_id}
        versions = PolicyVersion.objects.filter(policy_id=object_id)[:20].select_related("author")
        context |= {"versions": [(row, _difference(row)) for row in versions]}
        return super().change_view(request, object_id, *args, extra_context=context, **more)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view
        own = [
            path("<uuid:pk>/replay/", view(self.replay_view), name="policy_replay"),
            path("versions/<int:pk>/restore/", view(self.restore_view), name="policy_restore"),
        ]
        return [*own, *super().get_urls()]

    def restore_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        if request.method != "POST" or not self.has_change_permission(request):
            raise PermissionDenied
        version = get_object_or_404(PolicyVersion, pk=pk)
        try:
            policy = restore(version, request.user)
        except (BadPolicy, NameTaken) as error:
            messages.error(request, f"Version {version.number} cannot be had back. {error}")
            return redirect("admin:moderation_policyversion_changelist")
        self.log_change(request, policy, f"As in version {version.number}.")
        messages.success(request, f"{policy} is as it was in version {version.number}.")
        return redirect("admin:moderation_moderationpolicy_change", policy.pk)

    def replay_view(self, request: HttpRequest, pk: Any) -> HttpResponse:
        """What the content, as it is or as it is typed here, would have done with recent texts."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = get_object_or_404(ModerationPolicy, pk=pk)
        written = request.POST.get("content") or json.dumps(row.content, cls=PrettyJson)
        stage = request.POST.get("stage", "")
        context: dict[str, Any] = {"error": "", "replayed": None, "stage": stage, "stages": STAGES}
        try:
            context["replayed"] = replay(
                parsed(json.loads(written)),
                row,
                stage=stage,
                shows_texts=request.user.has_perm("moderation.view_decision"),
            )
        except (BadPolicy, ValueError) as error:
            context["error"] = str(error)
        context |= {
            **self.admin_site.each_context(request),
            "title": f"Replay: {row.name}",
            "policy": row,
            "written": written,
            "opts": self.opts,
            "back": reverse("admin:moderation_moderationpolicy_change", args=[row.pk]),
        }
        return TemplateResponse(request, "admin/policy_replay.html", context)


def _difference(version: PolicyVersion) -> list[str]:
    """Line by line what a version changed against the one before it."""
    rows = PolicyVersion.objects.filter(policy_id=version.policy_id, number__lt=version.number)
    before = rows.order_by("-number").first()
    was = _flat(before.snapshot) if before else {}
    now = _flat(version.snapshot) if version.change != "deleted" else {}
    lines = [f"− {name}: {was[name]}" for name in was if was[name] != now.get(name)]
    return lines + [f"+ {name}: {now[name]}" for name in now if now[name] != was.get(name)]


def _flat(value: Any, name: str = "") -> dict[str, str]:
    if not isinstance(value, dict):
        return {name: json.dumps(value, ensure_ascii=False)}
    found: dict[str, str] = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{name} → {key}" if name else str(key))
    return found


@admin.register(PolicyVersion)
class PolicyVersionAdmin(ReadOnlyAdmin):
    """The audit trail."""

    nothing_here = "Nobody has changed a policy."
    list_display = ("created_at", "name", "number", "change", "author", "note")
    list_filter = ("name", "change")
    list_select_related = ("author",)
    ordering = ("-created_at", "-pk")


class RuleForm(forms.ModelForm):
    class Meta:
        model = EditableRule
        exclude = ()
        help_texts = {
            "pattern": "Of RE2; (?i) in front ignores case. What was written is tried undisguised.",
            "probability": "Policies act from a threshold on.",
        }


@admin.register(EditableRule)
class RuleAdmin(ModelAdmin):  # type: ignore[misc]
    """Tried on its examples before it is saved; in force with the next answer."""

    nothing_here = "There are no rules of your own; those that come with the installation work."
    form = RuleForm
    list_display = ("name", "category", "pattern", "probability", "is_enabled", "updated_at")
    list_filter = ("category", "is_enabled")
    search_fields = ("name", "pattern")
