"""A setting of the site that is one row at most: its page stands for the list."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.admin import ModelAdmin


class OneRowAdmin(ModelAdmin):  # type: ignore[misc]
    """While there is no row, what the environment says holds, and again once it is deleted.
    `fields` are all that it has. Who changed it is in the log of this console."""

    show_add_link = False

    def forget(self) -> None:
        """Called once it has changed: what this process remembers of it is asked anew."""

    def by_environment(self) -> str:
        """What the environment says, in words: `NAME (value)`."""
        raise NotImplementedError

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        holds = "holds again once this is deleted" if obj else "holds until something is saved here"
        description = f"{self.by_environment()} {holds}."
        return [(None, {"fields": self.fields, "description": description})]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """There is no other one to add."""
        context |= {"show_save_and_add_another": False}
        response: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return response

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and not self.model.objects.exists()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        name = self.opts.model_name
        if self.has_add_permission(request):
            return redirect(f"admin:{self.opts.app_label}_{name}_add")
        row = self.model.objects.first()
        if row is not None and self.has_view_or_change_permission(request, row):
            return redirect(f"admin:{self.opts.app_label}_{name}_change", row.pk)
        response: HttpResponse = super().changelist_view(request, extra_context)
        return response

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        # Of two who add it at the same time the later one counts.
        values = {name: getattr(obj, name) for name in self.fields or ()}
        self.model.objects.update_or_create(pk=obj.pk, defaults=values)
        self.forget()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        self.forget()
