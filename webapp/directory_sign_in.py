"""Sign-in with the directory, by the same form as everybody: a backend of Django's beside the local one.

Local accounts are asked first, and need no directory. A password that opens none of them is shown to the
directory (webapp/directory.py), and kept nowhere.
"""

import logging
from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from webapp import directory
from webapp.connections import release_connections
from webapp.directory_people import come_in
from webapp.models import User

logger = logging.getLogger(__name__)

UNAVAILABLE = "directory_unavailable"


class DirectoryBackend(AuthenticationBackend):  # type: ignore[misc]
    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> User | None:
        """Raises ValidationError, in words, where the directory does not answer, or where somebody is in
        it and can have no account."""
        login = credentials.get("email") or credentials.get("username")
        entry = prove(str(login or ""), str(credentials.get("password") or ""))
        user = come_in(entry) if entry else None
        if user is not None and not self.user_can_authenticate(user):
            self._stash_user(user)  # allauth leads to the page that says so
            return None
        return user


@sensitive_variables("password")
def prove(login: str, password: str) -> directory.Entry | None:
    """As directory.prove. Raises ValidationError, in words, where the directory does not answer: the
    same whether or not it knows the login."""
    if settings.DIRECTORY is None:
        return None
    release_connections()
    try:
        return directory.prove(settings.DIRECTORY, login, password)
    except directory.DirectoryUnavailable as error:
        logger.error("the directory is not available: %s", error)
        words = _(
            "The directory that knows your password does not answer just now. Please try again in a few"
            " minutes."
        )
        raise ValidationError(words, code=UNAVAILABLE) from None
