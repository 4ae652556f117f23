"""The settings of sites that tests start: Vitrine's, but for the slow hash of passwords.

It protects people's, of which tests have none, and takes a quarter of a second of a core each time that
somebody signs up or in.
"""

from django.conf import global_settings

from webapp.settings import *  # noqa: F403

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.MD5PasswordHasher",
    *global_settings.PASSWORD_HASHERS,
]
