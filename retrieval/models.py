"""The rows of retrieval, where Django looks for them."""

from retrieval.collection_models import Access, Collection
from retrieval.document_models import (
    UNFINISHED,
    Chunk,
    Document,
    Embedding,
    EmbeddingModel,
    FileBatch,
    Term,
    Version,
    VersionState,
)
from retrieval.evaluation_models import Evaluation

__all__ = [
    "UNFINISHED",
    "Access",
    "Chunk",
    "Collection",
    "Document",
    "Embedding",
    "EmbeddingModel",
    "Evaluation",
    "FileBatch",
    "Term",
    "Version",
    "VersionState",
]
