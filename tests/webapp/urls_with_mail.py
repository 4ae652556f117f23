"""The addresses of a site with SMTP_HOST, which are chosen when the module is loaded."""

from django.urls import include, path

from webapp import accounts, urls

urlpatterns = [
    path("accounts/", include(accounts.urls_with_mail())),
    *urls.urlpatterns,
]

handler400, handler403 = urls.handler400, urls.handler403
handler404, handler500 = urls.handler404, urls.handler500
