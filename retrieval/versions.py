"""Versions of documents: those that are long replaced, and those that are not there yet."""

from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber

from retrieval import document_files
from retrieval.models import UNFINISHED, Document, Version

KEPT = 5  # of a document; a citation of an older one leads to the newest


def prune() -> None:
    """Drop old versions with their files, but never what is found or is on its way. In the system's
    scope."""
    rank = Window(RowNumber(), partition_by=F("document"), order_by=F("number").desc())
    old = Version.objects.annotate(rank=rank).filter(rank__gt=KEPT).exclude(state__in=UNFINISHED)
    live = Document.objects.exclude(live_version=None).values("live_version")
    for version_id in list(old.exclude(pk__in=live).values_list("pk", flat=True)):
        Version.objects.filter(pk=version_id).delete()
        document_files.remove(version_id)


def num_unfinished() -> dict[str, int]:
    """How many are in each state on the way to being found. In the system's scope."""
    counted = (
        Version.objects.filter(state__in=UNFINISHED).values_list("state").annotate(Count("pk"))
    )
    return {str(state): 0 for state in UNFINISHED} | dict(counted)
