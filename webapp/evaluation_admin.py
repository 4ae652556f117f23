"""How well passages were found, in the admin console: what `manage.py evalretrieval` has measured."""

from typing import Any

from django.contrib import admin

from retrieval.models import Evaluation
from webapp.read_only_admin import EverybodysAdmin


@admin.register(Evaluation)
class EvaluationAdmin(EverybodysAdmin):
    """A record; the next run is another one."""

    nothing_here = "Nothing has been measured: manage.py evalretrieval does."
    list_display = (
        "created_at",
        "set_name",
        "num_questions",
        "embedding_model",
        "configuration",
        "recall_1",
        "recall_5",
        "mrr",
        "ndcg",
        "characters_5",
    )
    list_filter = ("set_name", "way", "embedding_model")
    search_fields = ("set_name", "set_sha256")
    ordering = ("-created_at", "-pk")

    @admin.display(description="way, tokens / shared", ordering="way")
    def configuration(self, row: Evaluation) -> str:
        return f"{row.way}, {row.max_tokens} / {row.overlap_tokens}"

    @admin.display(description="recall@1")
    def recall_1(self, row: Evaluation) -> str:
        return _share(row.scores["recall"]["1"])

    @admin.display(description="recall@5")
    def recall_5(self, row: Evaluation) -> str:
        return _share(row.scores["recall"]["5"])

    @admin.display(description="MRR")
    def mrr(self, row: Evaluation) -> str:
        return _share(row.scores["mrr"])

    @admin.display(description="nDCG@10")
    def ndcg(self, row: Evaluation) -> str:
        return _share(row.scores["ndcg_at_10"])

    @admin.display(description="characters@5")
    def characters_5(self, row: Evaluation) -> str:
        return f"{row.scores['characters']['5']:,.0f}"


def _share(value: Any) -> str:
    return f"{value:.3f}"
