"""Bodies of /v1/vector_stores. Source: OpenAI's API description."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from chat.openai_schemas import A_LIST, A_TEXT, BY_SHAPE, Strict
from chat.storable import storable_value
from retrieval.attributes import Comparison, Compound

MAX_STORE_FILES = 500
MAX_BATCH_FILES = 2000
MAX_ATTRIBUTES = 16
MAX_NAME_CHARS = 64
MAX_TEXT_CHARS = 512
MAX_FILTERS = 100
MAX_FILTER_DEPTH = 8


def _attributes(given: dict[str, Any]) -> dict[str, Any]:
    """As they can be stored."""
    if len(given) > MAX_ATTRIBUTES:
        raise ValueError(f"at most {MAX_ATTRIBUTES} of them")
    for name, value in given.items():
        if len(name) > MAX_NAME_CHARS:
            raise ValueError(f"a name has at most {MAX_NAME_CHARS} characters")
        _scalar(value)
    found: dict[str, Any] = storable_value(given)
    return found


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | bool | int | float):
        raise ValueError("a text, a number, true or false")
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        raise ValueError(f"a text has at most {MAX_TEXT_CHARS} characters")
    return value


Id = Annotated[str, Field(max_length=64)]
Key = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Metadata = Annotated[dict[Key, Text], Field(max_length=16), AfterValidator(storable_value)]
Attributes = Annotated[dict[str, Any], AfterValidator(_attributes)]


class ExpiresAfter(Strict):
    anchor: Literal["last_active_at"]
    days: int = Field(ge=1, le=365)


class Sizes(Strict):
    max_chunk_size_tokens: int = Field(ge=100, le=4096)
    chunk_overlap_tokens: int = Field(ge=0)

    @model_validator(mode="after")
    def _overlap_is_half_at_most(self) -> Self:
        if 2 * self.chunk_overlap_tokens > self.max_chunk_size_tokens:
            raise ValueError("chunk_overlap_tokens: at most half of max_chunk_size_tokens")
        return self


class Chunking(Strict):
    """`auto`: as this installation cuts."""

    type: Literal["auto", "static"]
    static: Sizes | None = None

    @model_validator(mode="after")
    def _has_sizes_where_they_are_due(self) -> Self:
        if (self.type == "static") != (self.static is not None):
            raise ValueError("static: sizes for the type static, and none for auto")
        return self

    @property
    def sizes(self) -> tuple[int, int] | tuple[None, None]:
        """Tokens of a chunk, and of them those that it shares."""
        if self.static is None:
            return None, None
        return self.static.max_chunk_size_tokens, self.static.chunk_overlap_tokens


class VectorStoreIn(Strict):
    """The whole body; `chunking_strategy` is that of `file_ids`."""

    name: str | None = None
    description: str | None = None
    file_ids: list[Id] | None = Field(None, max_length=MAX_STORE_FILES)
    expires_after: ExpiresAfter | None = None
    chunking_strategy: Chunking | None = None
    metadata: Metadata | None = None


class VectorStoreChange(Strict):
    """What is left out stays; `expires_after` null means for good."""

    name: str | None = None
    expires_after: ExpiresAfter | None = None
    metadata: Metadata | None = None


class VectorStoreFileIn(Strict):
    file_id: Id
    attributes: Attributes | None = None
    chunking_strategy: Chunking | None = None


class AttributesIn(Strict):
    attributes: Attributes | None


class FileBatchIn(Strict):
    """`attributes` and `chunking_strategy` are for `file_ids`; `files` have their own."""

    file_ids: list[Id] | None = Field(None, min_length=1, max_length=MAX_BATCH_FILES)
    files: list[VectorStoreFileIn] | None = Field(None, min_length=1, max_length=MAX_BATCH_FILES)
    attributes: Attributes | None = None
    chunking_strategy: Chunking | None = None

    @model_validator(mode="after")
    def _names_files_once(self) -> Self:
        if (self.file_ids is None) == (self.files is None):
            raise ValueError("file_ids: name the files here or in `files`, and not in both")
        return self

    @property
    def each(self) -> list[VectorStoreFileIn]:
        """In order, each file once."""
        if self.files is not None:
            return list({one.file_id: one for one in self.files}.values())
        ids = dict.fromkeys(self.file_ids or [])
        return [
            VectorStoreFileIn(
                file_id=id_,
                attributes=self.attributes,
                chunking_strategy=self.chunking_strategy,
            )
            for id_ in ids
        ]


class Filter(Strict):
    """A comparison has `key` and `value`, `and` and `or` have `filters`."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "and", "or"]
    key: Key | None = None
    value: Any = None
    filters: list["Filter"] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.type in ("and", "or"):
            if self.filters is None or not {"key", "value"}.isdisjoint(self.model_fields_set):
                raise ValueError(f"filters: {self.type} has filters, and neither key nor value")
            return self
        if self.filters is not None or self.key is None or "value" not in self.model_fields_set:
            raise ValueError(f"key: {self.type} has a key and a value, and no filters")
        if (self.type in ("in", "nin")) != isinstance(self.value, list):
            raise ValueError("value: a list for in and nin, and none for the others")
        for value in self.value if isinstance(self.value, list) else [self.value]:
            _scalar(value)
        return self

    def wanted(self) -> Comparison | Compound:
        if self.type == "and" or self.type == "or":
            return Compound(self.type, [part.wanted() for part in self.filters or []])
        return Comparison(storable_value(self.key or ""), self.type, storable_value(self.value))


class RankingOptions(Strict):
    """`ranker` changes nothing: the installation chooses whether passages are ranked once more."""

    ranker: Literal["none", "auto", "default-2024-11-15"] = "auto"
    score_threshold: float = Field(0.0, ge=0, le=1)


Query = Annotated[str, Field(min_length=1, max_length=10_000)]


def _values_of(value: Any) -> list[Any]:
    found = value.get("value") if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _filters_of(value: Any) -> list[Any]:
    found = value.get("filters") if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _small(value: Any) -> Any:
    """Before it is read: a filter of filters has no end by itself."""
    num, level = 0, [value]
    for _ in range(MAX_FILTER_DEPTH):
        num += len(level) + sum(len(v) for v in map(_values_of, level))
        level = [part for v in level for part in _filters_of(v)]
    if level or num > MAX_FILTERS:
        raise ValueError(
            f"at most {MAX_FILTERS} filters and values, {MAX_FILTER_DEPTH} within each other"
        )
    return value


Filters = Annotated[Filter | None, BeforeValidator(_small)]


class VectorStoreSearchIn(Strict):
    """`rewrite_query` is taken and changes nothing: what is asked is what is looked for."""

    query: Annotated[
        Annotated[Query, A_TEXT]
        | Annotated[list[Query], Field(min_length=1, max_length=16), A_LIST],
        BY_SHAPE,
    ]
    rewrite_query: bool = False
    max_num_results: int = Field(10, ge=1, le=50)
    filters: Filters = None
    ranking_options: RankingOptions | None = None

    @property
    def queries(self) -> list[str]:
        return [self.query] if isinstance(self.query, str) else self.query
