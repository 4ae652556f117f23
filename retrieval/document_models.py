"""Documents, their versions, and the passages that are found."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils import timezone
from pgvector.django import HalfVectorField

from retrieval.collection_models import Collection
from retrieval.ids import uuid7

MODEL_NAME_CHARS = 200


class Document(models.Model):
    """Something that was brought here. Found are the passages of its live version; there is none
    before the first one is ready.

    `is_attached`: it came with a message, and goes when no message names it any more.
    A program that brought it as a file of its own knows it by that one's id, `file_id`; `attributes` are
    what it filters by (attributes.py), and `batch` is what it came with. `chunk_tokens` and
    `chunk_overlap_tokens` are the sizes that were asked for; None: the usual ones.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="documents")
    name = models.CharField(max_length=255)
    source_url = models.TextField(blank=True)
    media_type = models.CharField(max_length=100, blank=True)
    tags = ArrayField(models.CharField(max_length=50), default=list)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    live_version = models.UUIDField(null=True)
    is_attached = models.BooleanField(default=False)
    file_id = models.UUIDField(null=True)
    attributes = models.JSONField(default=dict)
    batch = models.ForeignKey(
        "retrieval.FileBatch", on_delete=models.SET_NULL, null=True, related_name="documents"
    )
    chunk_tokens = models.PositiveIntegerField(null=True)
    chunk_overlap_tokens = models.PositiveIntegerField(null=True)

    class Meta:
        indexes = [models.Index(fields=["collection", "-created_at"], name="document_recent")]
        constraints = [
            models.UniqueConstraint(fields=["collection", "file_id"], name="document_of_file_once")
        ]

    def __str__(self) -> str:
        return self.name


class FileBatch(models.Model):
    """Files that a program has brought into a collection together, to wait for all of them at once."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    is_cancelled = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"batch {self.id}"


class VersionState(models.TextChoices):
    QUEUED = "queued"
    PARSING = "parsing"
    EMBEDDING = "embedding"
    READY = "ready"
    FAILED = "failed"


UNFINISHED = (VersionState.QUEUED, VersionState.PARSING, VersionState.EMBEDDING)


class Version(models.Model):
    """One state of a document's file, from its upload until its passages are found.

    A worker reads it (PARSING), a web process has its passages embedded (EMBEDDING); each holds the
    lease meanwhile. `media_type` is what it was read as, whatever the document is by now; "" before, and
    of versions that are older than the field. `staged` are the passages that wait for their vectors
    (staging.py), `reason` says in words why it could not be read, and `notes` what was left out.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="versions")
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    number = models.PositiveIntegerField(default=1)
    sha256 = models.CharField(max_length=64, blank=True)
    size_bytes = models.BigIntegerField(default=0)
    state = models.CharField(
        max_length=16, choices=VersionState.choices, default=VersionState.QUEUED
    )
    reason = models.TextField(blank=True)
    media_type = models.CharField(max_length=100, blank=True)
    title = models.TextField(blank=True)
    language = models.CharField(max_length=35, blank=True)
    text = models.TextField(blank=True)
    pages = models.JSONField(default=list)
    notes = models.JSONField(default=list)
    staged = models.JSONField(default=list)
    num_chunks = models.PositiveIntegerField(default=0)
    num_embedded = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ready_at = models.DateTimeField(null=True)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["document", "number"], name="version_number_once")
        ]
        indexes = [
            models.Index(
                fields=["state", "lease_until"],
                condition=models.Q(state__in=UNFINISHED),
                name="version_unfinished",
            )
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.document_id}"


class Chunk(models.Model):
    """A passage: the characters `start` to `end` of its version's text. `terms` are its words, those
    of `context` (headings, a table's first row) among them, and what says who may see it (terms.py).

    The database deletes with the version itself, whoever deletes that; the same holds for vectors."""

    id = models.BigAutoField(primary_key=True)
    version = models.ForeignKey(
        Version, on_delete=models.DO_NOTHING, db_constraint=False, related_name="chunks"
    )
    document = models.ForeignKey(
        Document, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    collection = models.ForeignKey(
        Collection, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    number = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    first_page = models.PositiveIntegerField(default=1)
    last_page = models.PositiveIntegerField(default=1)
    context = models.TextField(blank=True)
    text = models.TextField()
    num_tokens = models.PositiveIntegerField(default=0)
    num_terms = models.PositiveIntegerField(default=0)
    terms = SearchVectorField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "number"], name="chunk_number_once")
        ]

    def __str__(self) -> str:
        return f"chunk {self.number} of {self.version_id}"


class EmbeddingModel(models.Model):
    """A model whose vectors are kept; those of each lie in an index of their own (vectors.py).

    `configured_at` is when the youngest web process began that is configured with it; None: none that
    has said so. Who holds the lease gives passages its vectors that lack them (reembedding.py).
    """

    id = models.SmallAutoField(primary_key=True)
    name = models.CharField(max_length=MODEL_NAME_CHARS)
    revision = models.CharField(max_length=64, blank=True)
    dimensions = models.PositiveSmallIntegerField()
    configured_at = models.DateTimeField(null=True)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "revision"], name="embedding_model_once")
        ]

    def __str__(self) -> str:
        return self.name


class Embedding(models.Model):
    """The vector of a chunk by one model, of length 1."""

    id = models.BigAutoField(primary_key=True)
    chunk = models.ForeignKey(
        Chunk, on_delete=models.DO_NOTHING, db_constraint=False, related_name="embeddings"
    )
    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="+")
    collection = models.ForeignKey(
        Collection, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    vector = HalfVectorField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chunk", "model"], name="embedding_once")]
        indexes = [models.Index(fields=["collection", "model"], name="embedding_of_collection")]

    def __str__(self) -> str:
        return f"embedding of chunk {self.chunk_id}"


class Term(models.Model):
    """In how many live passages of a collection a word is: what makes rare ones count for more."""

    id = models.BigAutoField(primary_key=True)
    collection = models.ForeignKey(
        Collection, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    term = models.CharField(max_length=64)
    num_chunks = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "term"], name="term_once")]

    def __str__(self) -> str:
        return self.term
