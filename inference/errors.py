"""Everything the engine raises, as one tree.

EngineError
├── ModelError              a model cannot be served; the sentence says why
│   ├── UnknownModel        no model of that name in the catalogue
│   ├── ModelRefused        unsupported architecture, failed self-test, broken files
│   └── ModelTooLarge       does not fit in memory; carries both numbers
├── RequestError            this request is wrong; others are unaffected
│   ├── ContextTooLong      prompt + max_tokens exceed the context; carries the counts
│   │   └── TextTooLong     a text exceeds an encoder's window; carries its index too
│   ├── InvalidParameter    carries the parameter's name
│   └── WrongKind           an embedding model cannot chat, a chat model cannot embed
├── Overloaded              the queue is full; carries retry_after_s
├── GenerationFailed        accepted, then lost for good (twice the worker died, say)
└── EncodingFailed          the same, of texts to embed, classify or rank
"""


class EngineError(Exception):
    """Base of all engine errors; `code` is stable and goes to API clients.

    `param` names what is wrong and `retry_after_s` says when to come back, where there is an answer.
    """

    code = "engine_error"
    param: str | None = None
    retry_after_s: float | None = None


class ModelError(EngineError):
    """The model cannot be served."""

    code = "model_error"


class UnknownModel(ModelError):
    """No model of that name in the catalogue."""

    code = "model_not_found"

    def __init__(self, model: str) -> None:
        super().__init__(f"The model '{model}' does not exist or you may not use it.")
        self.model = model


class ModelRefused(ModelError):
    """The model's files or architecture cannot be served; the message says why."""

    code = "model_refused"


class ModelTooLarge(ModelError):
    """The weights do not fit in memory, not in the part of it `for_models`, or not `on_gpu`."""

    code = "model_too_large"

    def __init__(
        self,
        model: str,
        *,
        needed_bytes: int,
        available_bytes: int,
        for_models: bool = False,
        on_gpu: bool = False,
    ) -> None:
        where = "there for all models together" if for_models else "free on this machine"
        where = "free on its GPU" if on_gpu else where
        super().__init__(
            f"{model} needs about {needed_bytes / 2**30:.1f} GiB of memory;"
            f" {available_bytes / 2**30:.1f} GiB are {where}."
        )
        self.needed_bytes = needed_bytes
        self.available_bytes = available_bytes


class RequestError(EngineError):
    """The request is wrong; nothing was queued."""

    code = "invalid_request"


class ContextTooLong(RequestError):
    """The prompt and the reserved answer exceed the model's context."""

    code = "context_length_exceeded"

    def __init__(
        self,
        *,
        num_prompt_tokens: int,
        max_context_tokens: int,
        num_reserved: int = 0,
        num_tools: int = 0,
    ) -> None:
        # langchain recognises an overflow by the words "context_length_exceeded" alone.
        kept = f", {num_reserved} of them kept for the answer" if num_reserved else ""
        also = f" and the {num_tools} tools that are switched on" if num_tools else ""
        super().__init__(
            f"context_length_exceeded: your messages{also} take {num_prompt_tokens} tokens;"
            f" the model's context holds {max_context_tokens}{kept}."
        )
        self.num_prompt_tokens = num_prompt_tokens
        self.max_context_tokens = max_context_tokens


class TextTooLong(ContextTooLong):
    """One of several texts exceeds what a model reads at once.

    `index` is its place among them. `is_cut`: it was not even read to its end, so `num_prompt_tokens`
    counts a part of it.
    """

    def __init__(
        self, index: int, *, num_tokens: int, max_context_tokens: int, is_cut: bool = False
    ) -> None:
        super().__init__(num_prompt_tokens=num_tokens, max_context_tokens=max_context_tokens)
        length = "is far longer than that" if is_cut else f"takes {num_tokens}"
        self.args = (
            "context_length_exceeded: the model reads"
            f" {max_context_tokens} tokens at once; text {index} {length}.",
        )
        self.index = index


class InvalidParameter(RequestError):
    """A parameter is out of range."""

    code = "invalid_parameter"

    def __init__(self, param: str, reason: str) -> None:
        super().__init__(f"{param}: {reason}")
        self.param = param


class WrongKind(RequestError):
    """The model is made for something else."""

    code = "wrong_model_kind"
    param = "model"

    def __init__(self, model: str, *, kind: str, wanted: str) -> None:
        super().__init__(f"'{model}' is {kind}; this needs {wanted}.")


class Overloaded(EngineError):
    """The waiting queue is full; try again after `retry_after_s`."""

    code = "overloaded"

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("The engine's queue is full.")
        self.retry_after_s = retry_after_s

    @classmethod
    def expecting(cls, wait_s: float | None) -> "Overloaded":
        """By how long the queue will probably take: clients do not wait longer than two minutes."""
        return cls(retry_after_s=min(120.0, wait_s or 5.0))


class GenerationFailed(EngineError):
    """An accepted request could not be completed."""

    code = "generation_failed"


class EncodingFailed(EngineError):
    """Texts that were accepted could not be embedded, classified or ranked."""

    code = "encoding_failed"


def error_of(
    code: str, message: str, retry_after_s: float | None = None, param: str | None = None
) -> EngineError:
    """What a worker or its host has said, as an error to raise; the code stays what it is."""
    if code == Overloaded.code:
        return Overloaded(retry_after_s or 1.0)
    kinds: tuple[type[EngineError], ...] = (ModelRefused, ModelError, RequestError, EncodingFailed)
    error = next((kind for kind in kinds if kind.code == code), EngineError)(message)
    error.code, error.retry_after_s, error.param = code, retry_after_s, param
    return error
