"""Whose vectors passages have, in the admin console: how far a model is that takes over from another."""

from django.contrib import admin
from django.db.models import F

from retrieval import reembedding
from retrieval.models import EmbeddingModel
from webapp.read_only_admin import EverybodysAdmin


@admin.register(EmbeddingModel)
class EmbeddingModelAdmin(EverybodysAdmin):
    """Rows come and go with `VITRINE_EMBEDDING_MODEL`."""

    nothing_here = "No model has made vectors yet."
    list_display = ("name", "short_revision", "dimensions", "progress", "state")
    ordering = (F("configured_at").desc(nulls_last=True), "-pk")

    @admin.display(description="revision")
    def short_revision(self, row: EmbeddingModel) -> str:
        return row.revision[:12]

    @admin.display(description="passages that have its vectors")
    def progress(self, row: EmbeddingModel) -> str:
        done = reembedding.progress(row)
        return f"{done.num_done:,} of {done.num_passages:,} ({done.percent} %)"

    @admin.display(description="what it does")
    def state(self, row: EmbeddingModel) -> str:
        return reembedding.progress(row).state
