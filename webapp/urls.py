"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path

from webapp import accounts, health, setup

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("setup/<str:token>", setup.SetupView.as_view(), name="setup"),
    path("accounts/", include(accounts.urlpatterns)),
    path("admin/", admin.site.urls),
    path("", include("chat.urls")),
]

handler400 = "webapp.error_pages.bad_request"
handler403 = "webapp.error_pages.permission_denied"
handler404 = "webapp.error_pages.not_found"
handler500 = "webapp.error_pages.server_error"
