"""Every address of the site."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from chat.rest import api
from webapp import (
    account_pages,
    accounts,
    admin_api,
    health,
    installable,
    key_pages,
    keys_api,
    languages,
    metrics,
    own_data,
    provider_sign_in,
    setup,
    signed_in,
    tokens_api,
    two_step,
)

# What is the shell's own stands in the same description as all the rest of /api.
api.add_router("", keys_api.router)
api.add_router("/auth", tokens_api.router)
api.add_router("", admin_api.router)

urlpatterns = [
    path("", include("chat.urls")),  # first: of each hundred requests nearly all are for these
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("manifest.webmanifest", installable.manifest, name="manifest"),
    path("service-worker.js", installable.service_worker, name="service-worker"),
    path("offline", installable.offline, name="offline"),
    path("setup/<str:token>", setup.SetupView.as_view(), name="setup"),
    path("accounts/", include(accounts.urlpatterns)),
    path("settings/keys", key_pages.keys, name="keys"),
    path("settings/keys/new", key_pages.new_key, name="new-key"),
    path("settings/keys/<int:key_id>", key_pages.edit_key, name="edit-key"),
    path("settings/keys/<int:key_id>/rotate", key_pages.rotate_key, name="rotate-key"),
    path("settings/keys/<int:key_id>/revoke", key_pages.revoke_key, name="revoke-key"),
    path("accounts/", include(two_step.entrance_patterns)),
    path("accounts/", include(provider_sign_in.urls_of(settings.SIGN_IN_PROVIDERS))),
    path("accounts/signed-in", signed_in.signed_in, name="signed-in"),
    path("accounts/who", signed_in.who, name="who"),
    path("settings/sessions", account_pages.sessions, name="sessions"),
    path("settings/name", account_pages.change_name, name="change-name"),
    path("settings/security/", include(two_step.settings_patterns)),
    path("settings/export", own_data.export_everything, name="export-everything"),
    path("settings/delete-account", own_data.delete_account, name="delete-account"),
    path("settings/language", languages.choose_language, name="language"),
    path("admin/", admin.site.urls),
]
if settings.SCIM_TOKEN:
    urlpatterns.append(path("scim/v2/", include("webapp.scim.urls")))

handler400 = "webapp.error_pages.bad_request"
handler403 = "webapp.error_pages.permission_denied"
handler404 = "webapp.error_pages.not_found"
handler500 = "webapp.error_pages.server_error"
