"""The addresses of a site with mail and an OpenID Connect server."""

from django.urls import include, path

from tests.webapp import urls_with_mail
from webapp import provider_sign_in
from webapp.providers import SignInProvider

_ANY = SignInProvider("work", "Work", "openid_connect", "id", "secret")

urlpatterns = [
    path("accounts/", include(provider_sign_in.urls_of((_ANY,)))),
    *urls_with_mail.urlpatterns,
]

handler400, handler403 = urls_with_mail.handler400, urls_with_mail.handler403
handler404, handler500 = urls_with_mail.handler404, urls_with_mail.handler500
