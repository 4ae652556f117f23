"""The addresses of a site with a directory, with mail and with an OpenID Connect server."""

from django.urls import include, path

from tests.webapp import urls_with_provider

urlpatterns = [path("scim/v2/", include("webapp.scim.urls")), *urls_with_provider.urlpatterns]

handler400, handler403 = urls_with_provider.handler400, urls_with_provider.handler403
handler404, handler500 = urls_with_provider.handler404, urls_with_provider.handler500
