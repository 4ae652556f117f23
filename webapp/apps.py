"""The shell as a Django app."""

from django.apps import AppConfig


class WebappConfig(AppConfig):
    name = "webapp"
    verbose_name = "People and keys"

    def ready(self) -> None:
        from webapp import checks  # noqa: F401
