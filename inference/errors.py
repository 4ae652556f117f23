"""Everything the engine raises, as one tree.

EngineError
├── ModelError              a model cannot be served; the sentence says why
│   ├── UnknownModel        no model of that name in the catalogue
│   ├── ModelRefused        unsupported architecture, failed self-test, broken files
│   └── ModelTooLarge       does not fit in memory; carries both numbers
├── RequestError            this request is wrong; others are unaffected
│   ├── ContextTooLong      prompt + max_tokens exceed the context; carries the counts
│   └── InvalidParameter    carries the parameter's name
├── Overloaded              the queue is full; carries retry_after_s
└── GenerationFailed        accepted, then lost for good (twice the worker died, say)
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
    """The weights do not fit in memory."""

    code = "model_too_large"

    def __init__(self, model: str, *, needed_bytes: int, available_bytes: int) -> None:
        super().__init__(
            f"{model} needs about {needed_bytes / 2**30:.1f} GiB of memory;"
            f" {available_bytes / 2**30:.1f} GiB are free on this machine."
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
        self, *, num_prompt_tokens: int, max_context_tokens: int, num_reserved: int = 0
    ) -> None:
        # langchain recognises an overflow by the words "context_length_exceeded" alone.
        kept = f", {num_reserved} of them kept for the answer" if num_reserved else ""
        super().__init__(
            f"context_length_exceeded: your messages take {num_prompt_tokens} tokens;"
            f" the model's context holds {max_context_tokens}{kept}."
        )
        self.num_prompt_tokens = num_prompt_tokens
        self.max_context_tokens = max_context_tokens


class InvalidParameter(RequestError):
    """A parameter is out of range."""

    code = "invalid_parameter"

    def __init__(self, param: str, reason: str) -> None:
        super().__init__(f"{param}: {reason}")
        self.param = param


class Overloaded(EngineError):
    """The waiting queue is full; try again after `retry_after_s`."""

    code = "overloaded"

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("The engine's queue is full.")
        self.retry_after_s = retry_after_s


class GenerationFailed(EngineError):
    """An accepted request could not be completed."""

    code = "generation_failed"
