"""Settings pages: custom instructions, assistants, prompts. Plain forms; they need no JavaScript."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat import personal
from chat.form_pages import form_page, is_saved, page_in_db
from chat.personal_forms import AssistantForm, PersonalisationForm, PromptForm
from chat.rights import rights_of
from retrieval.collections import collections_for

MAX_COLLECTIONS_SHOWN = 200
_ASSISTANTS = {
    "heading": _("Assistants"),
    "about": _(
        "A model with a purpose: its instructions, its manner, its suggestions. Choose one at the"
        " top of a chat. A chat keeps the assistant as it was when the chat began."
    ),
    "new_words": _("New assistant"),
    "new_url": "new-assistant",
    "empty": _("You have no assistants yet."),
}
_PROMPTS = {
    "heading": _("Prompts"),
    "about": _("Texts that you need again and again. Type / in the message box to put one in."),
    "new_words": _("New prompt"),
    "new_url": "new-prompt",
    "empty": _("You have no prompts yet."),
}


@page_in_db
def personalisation(request: HttpRequest) -> HttpResponse:
    row = personal.personalisation_of(request.user)
    names = (
        *("is_on", "about_you", "how_to_answer", "history_strategy"),
        *("caches_answers", "version"),
    )
    form = PersonalisationForm(
        request.POST or None, initial={name: getattr(row, name) for name in names}
    )

    def save(fields: dict[str, Any]) -> None:
        version = fields.pop("version")
        personal.save_personalisation(request.user, version, **fields)

    if is_saved(request, form, save):
        return redirect("personalisation")
    about = gettext(
        "Told to the model at the beginning of every new chat. Other chats stay as they are."
    )
    return form_page(request, form, gettext("Personalisation"), about=about)


# --- assistants -----------------------------------------------------------------------------------


@page_in_db
def assistants(request: HttpRequest) -> HttpResponse:
    rows = [
        {
            "title": row.name,
            "about": row.description or row.system_prompt,
            "mark": gettext("Shared with everybody") if row.is_shared else "",
            "url": f"/settings/assistants/{row.pk}" if row.owner_id == request.user.pk else "",
            "start": f"/?assistant={row.pk}",
        }
        for row in personal.assistants_for(request.user)
    ]
    return render(
        request, "settings/list.html", {"rows": rows, "here": "assistants", **_ASSISTANTS}
    )


@page_in_db
def new_assistant(request: HttpRequest) -> HttpResponse:
    form = _assistant_form(request, {"history_strategy": ""})

    def save(fields: dict[str, Any]) -> None:
        personal.create_assistant(request.user, **form.fields_of_row({}))

    if is_saved(request, form, save):
        return redirect("assistants")
    return form_page(request, form, gettext("New assistant"), here="assistants")


@page_in_db
def edit_assistant(request: HttpRequest, assistant_id: UUID) -> HttpResponse:
    row = personal.own_assistant(request.user, assistant_id)
    if "delete" in request.POST:
        personal.delete_assistant(request.user, assistant_id)
        messages.success(
            request,
            gettext("%(name)s is deleted. Chats that were started with it go on.")
            % {"name": row.name},
        )
        return redirect("assistants")
    names = ("name", "description", "model", "system_prompt", "history_strategy", "is_shared")
    initial = {name: getattr(row, name) for name in (*names, "version")}
    initial |= row.parameters | {"starters": "\n".join(row.starters)}
    initial["collections"] = [str(id_) for id_ in row.collections]
    initial["tool_servers"] = row.tool_servers
    form = _assistant_form(request, initial)

    def save(fields: dict[str, Any]) -> None:
        changes = form.fields_of_row(row.parameters)
        personal.change_assistant(request.user, assistant_id, fields["version"], **changes)

    if is_saved(request, form, save):
        return redirect("assistants")
    return form_page(request, form, row.name, here="assistants", may_delete=True)


def _assistant_form(request: HttpRequest, initial: dict[str, Any]) -> AssistantForm:
    user: Any = request.user
    models = [(state.spec.name, state.spec.title) for state in rights_of(request).models("chat")]
    rows = collections_for(user).filter(is_for_chats=False)[:MAX_COLLECTIONS_SHOWN]
    return AssistantForm(
        request.POST or None,
        initial=initial,
        models=models,
        collections=[(str(row.pk), row.name) for row in rows],
        tool_servers=[(spec.name, spec.title) for spec in rights_of(request).tool_servers()],
        may_share=user.is_staff,
    )


# --- prompts --------------------------------------------------------------------------------------


@page_in_db
def prompts(request: HttpRequest) -> HttpResponse:
    rows = [
        {"title": f"/{row.name}", "about": row.text, "url": f"/settings/prompts/{row.pk}"}
        for row in personal.prompts_of(request.user)
    ]
    return render(request, "settings/list.html", {"rows": rows, "here": "prompts", **_PROMPTS})


@page_in_db
def new_prompt(request: HttpRequest) -> HttpResponse:
    form = PromptForm(request.POST or None)

    def save(fields: dict[str, Any]) -> None:
        personal.create_prompt(request.user, name=fields["name"], text=fields["text"])

    if is_saved(request, form, save):
        return redirect("prompts")
    return form_page(request, form, gettext("New prompt"), here="prompts")


@page_in_db
def edit_prompt(request: HttpRequest, prompt_id: UUID) -> HttpResponse:
    row = personal.prompt_for(request.user, prompt_id)
    if "delete" in request.POST:
        personal.delete_prompt(request.user, prompt_id)
        messages.success(request, gettext("%(name)s is deleted.") % {"name": f"/{row.name}"})
        return redirect("prompts")
    initial = {"name": row.name, "text": row.text, "version": row.version}
    form = PromptForm(request.POST or None, initial=initial)

    def save(fields: dict[str, Any]) -> None:
        personal.change_prompt(request.user, prompt_id, **fields)

    if is_saved(request, form, save):
        return redirect("prompts")
    return form_page(request, form, f"/{row.name}", here="prompts", may_delete=True)
