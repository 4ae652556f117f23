"""Documents that go, with all that was kept of them. Synchronous, in the scope of who may see them."""

from retrieval import document_files, indexing
from retrieval.models import Document, Version
from retrieval.system_rights import system_rights


def drop(document: Document) -> None:
    """With its versions, their files, and all that was found in it. A crash leaves files without rows
    at most, which are swept."""
    versions = list(Version.objects.filter(document=document).values_list("pk", flat=True))
    with system_rights():
        # Looked up once more: it may be gone, or moved on, since.
        kept = Document.objects.filter(pk=document.pk).first()
        if kept is not None:
            indexing.forget(kept)
    for version_id in versions:
        document_files.remove(version_id)
