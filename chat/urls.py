"""Addresses of the chat."""

from django.urls import path

from chat import (
    anthropic_api,
    api_page,
    document_pages,
    memory_pages,
    openai_api,
    personal_pages,
    rest,
    sandboxes,
    share_views,
    stopped_pages,
    usage_pages,
    views,
)

urlpatterns = [
    path("v1/", anthropic_api.api.urls),
    path("v1/", openai_api.api.urls),
    path("api/docs", api_page.to_page),
    path("api/", rest.api.urls),
    path("", views.new_chat, name="new-chat"),
    path("c/<uuid:conversation_id>", views.show_chat, name="chat"),
    path("c/<uuid:conversation_id>/print", views.print_chat, name="print-chat"),
    path("s/<str:token>", share_views.show_shared, name="shared"),
    path("s/<str:token>/continue", share_views.continue_shared, name="continue-shared"),
    path("documents/", document_pages.show_collections, name="collections"),
    path(
        "documents/collections/<uuid:collection_id>",
        document_pages.show_collection,
        name="collection",
    ),
    path("documents/<uuid:document_id>", document_pages.show_document, name="document"),
    path("settings/", views.settings_page, name="settings"),
    path("settings/usage", usage_pages.usage_page, name="usage"),
    path("settings/moderation", stopped_pages.stopped_page, name="stopped"),
    path("settings/personalisation", personal_pages.personalisation, name="personalisation"),
    path("settings/memory", memory_pages.memory_page, name="memory"),
    path("settings/assistants", personal_pages.assistants, name="assistants"),
    path("settings/assistants/new", personal_pages.new_assistant, name="new-assistant"),
    path("settings/assistants/<uuid:assistant_id>", personal_pages.edit_assistant),
    path("settings/prompts", personal_pages.prompts, name="prompts"),
    path("settings/prompts/new", personal_pages.new_prompt, name="new-prompt"),
    path("settings/prompts/<uuid:prompt_id>", personal_pages.edit_prompt),
    path("sandbox/diagram", sandboxes.diagram, name="diagram-sandbox"),
    path("sandbox/preview", sandboxes.preview, name="preview-sandbox"),
    path("sandbox/image", sandboxes.image, name="image-sandbox"),
    path("settings/api", api_page.show_api, name="api"),
]
