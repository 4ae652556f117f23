"""The shell as a Django app."""

from django.apps import AppConfig


class WebappConfig(AppConfig):
    name = "webapp"
    verbose_name = "People and keys"

    def ready(self) -> None:
        from allauth.account.signals import password_reset
        from django.contrib.auth.signals import user_logged_in

        from webapp import checks, security_events  # noqa: F401
        from webapp.sign_ins import note_login
        from webapp.unconfirmed import note_reset

        password_reset.connect(note_reset)
        user_logged_in.connect(note_login)  # all ways in lead there
        security_events.connect()
