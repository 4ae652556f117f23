"""Documents, and finding passages in them."""

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "retrieval"
