"""What the console shows and nobody changes there."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

from webapp.tenancy import as_system


class _RecordsList(ChangeList):  # type: ignore[misc]
    """Where all rows are not counted beside those that are shown, and none is left out, they are the
    same: the page has nothing to lead back to."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.full_result_count: int | None
        if self.full_result_count is None and not (self.query or self.has_active_filters):
            self.full_result_count = self.result_count


class RecordsAdmin(ModelAdmin):  # type: ignore[misc]
    """What is a record of something: nobody adds or deletes it here."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[Any]:
        return _RecordsList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(RecordsAdmin):
    """Nor changes it."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class OfEverybody(ModelAdmin):  # type: ignore[misc]
    """Rows that row-level security shows to their owners are seen here, whoever's they are."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        with as_system():
            return rendered(super().changelist_view(request, extra_context))

    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with as_system():
            return rendered(super().change_view(request, *args, **kwargs))


class EverybodysAdmin(OfEverybody, ReadOnlyAdmin):
    """Records of all people that hold no content of anybody's."""


def rendered(response: HttpResponse) -> HttpResponse:
    """Its rows are read while it is put on the page, which has to be in the scope that sees them."""
    return response.render() if isinstance(response, TemplateResponse) else response
