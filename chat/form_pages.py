"""Settings pages that are a plain form: sent, checked, saved, and shown with what is wrong in it."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from chat.db import in_db
from chat.errors import ChatError, NotFound
from chat.personal_forms import VersionedForm

Page = Callable[..., HttpResponse]


def page_in_db(page: Page) -> Callable[..., Any]:
    """The page made in a thread of the database's; another person's row is a missing page."""

    async def view(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        try:
            return await in_db(page)(request, **kwargs)
        except NotFound:
            raise Http404 from None

    return view


def is_saved(
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


def form_page(
    request: HttpRequest,
    form: VersionedForm,
    heading: str,
    *,
    about: str = "",
    here: str = "personalisation",
    may_delete: bool = False,
    template: str = "settings/form.html",
    **more: Any,
) -> HttpResponse:
    context = {
        "form": form,
        "heading": heading,
        "about": about,
        "here": here,
        "may_delete": may_delete,
        **more,
    }
    return render(request, template, context, status=400 if form.errors else 200)
