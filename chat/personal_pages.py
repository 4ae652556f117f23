"""Settings pages: custom instructions, assistants, prompts. Plain forms; they need no JavaScript."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat import personal
from chat.db import in_db
from chat.errors import ChatError, NotFound
from chat.personal_forms import AssistantForm, PersonalisationForm, PromptForm, VersionedForm
from chat.rights import rights_of
from retrieval.collections import collections_for

Page = Callable[..., HttpResponse]
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


def _async(page: Page) -> Callable[..., Any]:
    """The page made in a thread of the database's; another person's row is a missing page."""

    async def view(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        try:
            return await in_db(page)(request, **kwargs)
        except NotFound:
            raise Http404 from None

    return view


@_async
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

    if _saved(request, form, save):
        return redirect("personalisation")
    about = gettext(
        "Told to the model at the beginning of every new chat. Other chats stay as they are."
    )
    return _form(request, form, gettext("Personalisation"), about=about)


# --- assistants -----------------------------------------------------------------------------------


@_async
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


@_async
def new_assistant(request: HttpRequest) -> HttpResponse:
    form = _assistant_form(request, {"history_strategy": ""})

    def save(fields: dict[str, Any]) -> None:
        personal.create_assistant(request.user, **form.fields_of_row({}))

    if _saved(request, form, save):
        return redirect("assistants")
    return _form(request, form, gettext("New assistant"), here="assistants")


@_async
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

    if _saved(request, form, save):
        return redirect("assistants")
    return _form(request, form, row.name, here="assistants", may_delete=True)


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


@_async
def prompts(request: HttpRequest) -> HttpResponse:
    rows = [
        {"title": f"/{row.name}", "about": row.text, "url": f"/settings/prompts/{row.pk}"}
        for row in personal.prompts_of(request.user)
    ]
    return render(request, "settings/list.html", {"rows": rows, "here": "prompts", **_PROMPTS})


@_async
def new_prompt(request: HttpRequest) -> HttpResponse:
    form = PromptForm(request.POST or None)

    def save(fields: dict[str, Any]) -> None:
        personal.create_prompt(request.user, name=fields["name"], text=fields["text"])

    if _saved(request, form, save):
        return redirect("prompts")
    return _form(request, form, gettext("New prompt"), here="prompts")


@_async
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

    if _saved(request, form, save):
        return redirect("prompts")
    return _form(request, form, f"/{row.name}", here="prompts", may_delete=True)


# --- all ------------------------------------------------------------------------------------------


def _saved(
    request: HttpRequest, form: VersionedForm, save: Callable[[dict[str, Any]], None]
) -> bool:
    """Whether the form was sent and its values are saved; what is wrong stands in the form."""
    if request.method != "POST" or not form.is_valid():
        return False
    try:
        save(dict(form.cleaned_data))
    except NotFound:
        raise
    except ChatError as error:
        form.add_error(None, str(error))
        return False
    messages.success(request, gettext("Saved."))
    return True


def _form(
    request: HttpRequest,
    form: VersionedForm,
    heading: str,
    *,
    about: str = "",
    here: str = "personalisation",
    may_delete: bool = False,
) -> HttpResponse:
    context = {
        "form": form,
        "heading": heading,
        "about": about,
        "here": here,
        "may_delete": may_delete,
    }
    status = 400 if form.errors else 200
    return render(request, "settings/form.html", context, status=status)
