"""What is done to many accounts at once, in the console's list of users."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.forms import ActionForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from webapp.console_words import counted
from webapp.handover import CannotTake, hand_over
from webapp.models import Tier, User
from webapp.own_data import LastAdministrator, suspend_for_good
from webapp.security_events import Kind, note_event
from webapp.sign_ins import end_all_sign_ins
from webapp.suspensions import forget_marks, waits_for_handover

Act = Callable[[User], str]
"""Does it, and says what was done; empty where it was so already. Raises LastAdministrator."""


def _choice(rows: QuerySet[Any], label: str, action: str) -> Any:
    widget = UnfoldAdminSelectWidget({"aria-label": label})
    field: Any = forms.ModelChoiceField(
        rows, required=False, empty_label=f"{label}…", label="", widget=widget
    )
    field.of_action = action
    return field


class UserActionForm(ActionForm):  # type: ignore[misc]
    """Beside the action, what it takes; templates/admin/actions.html shows a field where its action
    is chosen."""

    tier = _choice(Tier.objects.order_by("slug"), "Tier", "set_tier")
    group = _choice(Group.objects.order_by("name"), "Group", "add_to_group")
    taker: Any = forms.CharField(
        required=False,
        label="",
        widget=UnfoldAdminTextInputWidget(
            {
                "aria-label": "Who takes over",
                "placeholder": "Who takes over: an address",
                "dir": "ltr",
            }
        ),
    )
    taker.of_action = "hand_over"


class UserActions:
    """For the ModelAdmin of users. Whoever is not a superuser does it to accounts below their own alone,
    and each act is in the log."""

    action_form = UserActionForm
    actions: Any = ("set_tier", "add_to_group", "suspend", "let_in", "sign_out", "hand_over")

    def has_rights_permission(self, request: HttpRequest) -> bool:
        """Groups may hold permissions, which superusers alone give."""
        return bool(getattr(request.user, "is_superuser", False))

    @admin.action(description="Set the tier", permissions=["change"])
    def set_tier(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        tier = _chosen(request, "tier", Tier.objects.all())
        if tier is None:
            return self._ask(request, rows, "Which tier shall they have?", "tier")
        self._do(request, rows, partial(_set_tier, tier), f"in the tier {tier} now")
        return None

    @admin.action(description="Add to the group", permissions=["rights"])
    def add_to_group(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        group = _chosen(request, "group", Group.objects.all())
        if group is None:
            return self._ask(request, rows, "Which group shall they be in?", "group")
        self._do(request, rows, partial(_add_to_group, group), f"added to {group}")
        return None

    @admin.action(description="Suspend", permissions=["change"])
    def suspend(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        if request.POST.get("post") != "yes":
            question = "Suspend these accounts? They are signed out at once, and cannot come back."
            return self._ask(request, rows, question)
        self._do(request, rows, _suspend, "suspended")
        return None

    @admin.action(description="Let in again", permissions=["change"])
    def let_in(self, request: HttpRequest, rows: QuerySet[User]) -> None:
        self._do(request, rows, _let_in, "let in again")

    @admin.action(description="Sign out everywhere", permissions=["change"])
    def sign_out(self, request: HttpRequest, rows: QuerySet[User]) -> None:
        self._do(request, rows, _sign_out, "signed out everywhere")

    @admin.action(description="Hand over what they have shared", permissions=["rights"])
    def hand_over(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        """Collections that others may read, and assistants that all see; nobody's chats."""
        typed = request.POST.get("taker", "").strip()
        taker = User.objects.filter(email__iexact=typed).first()
        if taker is None:
            question = "Who takes over? Type the e-mail address of an account."
            return self._ask(request, rows, question, "taker")
        problems: list[str] = []
        self._do(request, rows, partial(_hand_over, taker, problems), "handed over")
        for problem in problems[:20]:
            messages.error(request, problem)
        return None

    def _ask(
        self, request: HttpRequest, rows: QuerySet[User], question: str, field: str = ""
    ) -> HttpResponse:
        """A page between, on which the same accounts stay chosen; `field` is what is missing."""
        action = request.POST["action"]
        site: Any = self.admin_site  # type: ignore[attr-defined]
        context = {
            **site.each_context(request),
            "title": dict(self.get_action_choices(request))[action],  # type: ignore[attr-defined]
            "opts": User._meta,
            "question": question,
            "field": UserActionForm(request.POST)[field] if field else None,
            "action": action,
            "is_across": request.POST.get("select_across") == "1",
            "accounts": rows.order_by("email"),
        }
        return TemplateResponse(request, "admin/act_on_users.html", context)

    def _do(self, request: HttpRequest, rows: QuerySet[User], act: Act, outcome: str) -> None:
        num_done = 0
        kept: list[str] = []
        for user in rows.order_by("pk"):
            if not self._is_below(request.user, user, or_own=False):  # type: ignore[attr-defined]
                kept.append(f"{user.email} is not below you")
                continue
            try:
                done = act(user)
            except LastAdministrator:
                kept.append(f"{user.email} is the last administrator")
                continue
            if done:
                self.log_change(request, user, done)  # type: ignore[attr-defined]
                num_done += 1
        if num_done:
            messages.success(request, f"{counted(num_done, 'account')} {outcome}.")
        elif not kept:
            messages.info(request, "Nothing has changed: it was so already.")
        if kept:
            messages.error(request, f"Left alone: {'; '.join(kept[:20])}.")


def _chosen(request: HttpRequest, name: str, rows: QuerySet[Any]) -> Any:
    """What stands beside the action, or None."""
    try:
        return forms.ModelChoiceField(rows).clean(request.POST.get(name))
    except forms.ValidationError:
        return None


def _set_tier(tier: Tier, user: User) -> str:
    if not User.objects.filter(pk=user.pk).exclude(tier=tier).update(tier=tier):
        return ""
    note_event(Kind.RIGHTS, account=user.pk, how=f"tier: {tier.slug}")
    return f"Set the tier {tier}."


def _add_to_group(group: Group, user: User) -> str:
    if user.groups.filter(pk=group.pk).exists():
        return ""
    user.groups.add(group)
    note_event(Kind.RIGHTS, account=user.pk, how=f"added to group {group.pk}")
    return f"Added to the group {group}."


def _suspend(user: User) -> str:
    """From here on it is the console's suspension, whoever had suspended before."""
    if not user.is_active:
        if waits_for_handover(user) or not forget_marks(user):
            return ""
        note_event(Kind.SUSPENSION, account=user.pk, how="in the console")
        return "Suspended."
    suspend_for_good(user)
    forget_marks(user)
    _sign_out(user)
    return "Suspended."


def _let_in(user: User) -> str:
    if not User.objects.filter(pk=user.pk, is_active=False).update(is_active=True):
        return ""
    forget_marks(user)
    note_event(Kind.LET_IN, account=user.pk, how="in the console")
    return "Let in again."


def _hand_over(taker: User, problems: list[str], user: User) -> str:
    try:
        handed = hand_over(user, taker)
    except CannotTake as error:
        problems.append(f"{user.email}: {error}")
        return ""
    problems += [f"{user.email}: {problem}" for problem in handed.problems]
    return f"Handed over to {taker.email}: {handed}."


def _sign_out(user: User) -> str:
    """Browsers and programs that have tokens; API keys are revoked each by itself."""
    end_all_sign_ins(user)
    return "Signed out everywhere."
