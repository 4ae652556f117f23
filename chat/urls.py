"""Addresses of the chat."""

from django.urls import path

from chat import openai_api, rest, views

urlpatterns = [
    path("", views.new_chat, name="new-chat"),
    path("c/<uuid:conversation_id>", views.show_chat, name="chat"),
    path("settings/", views.settings_page, name="settings"),
    path("api/", rest.api.urls),
    path("v1/", openai_api.api.urls),
]
