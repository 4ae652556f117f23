"""What this process has answered, in numbers for its operator's monitoring.

Of models and outcomes only: no label holds what a caller chose freely, a name, or a text.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import Counter, Histogram

from chat.events import TERMINAL, Event, Failed, Finished, Stopped
from inference import EngineError, Priority, UnknownModel

_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_TOKEN_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)

_OF = ("model", "priority")

_answers = Counter("vitrine_answers", "Answers that came to an end.", [*_OF, "outcome"])
_tokens = Counter("vitrine_tokens", "Tokens of answers that came to an end.", [*_OF, "kind"])
_ttft = Histogram(
    "vitrine_ttft_seconds",
    "From the request to the first text.",
    _OF,
    buckets=_SECONDS,
)
_queued = Histogram(
    "vitrine_queued_seconds",
    "What an answer waited for its turn.",
    _OF,
    buckets=_SECONDS,
)
_decode = Histogram(
    "vitrine_decode_seconds_per_token",
    "What a token took after the first.",
    _OF,
    buckets=_TOKEN_SECONDS,
)
_lookups = Counter(
    "vitrine_answer_cache_lookups", "Questions looked up among answers given before.", ["outcome"]
)
_verdicts = Counter(
    "vitrine_verdicts", "What policies said about texts, by stage.", ["stage", "action"]
)
_away = Counter(
    "vitrine_classifier_failures",
    "Verdicts that were given without a classifier, which could not be asked.",
    ["classifier"],
)
_ratings = Counter("vitrine_ratings", "What readers thought of answers.", ["model", "rating"])
for _outcome in ("same", "similar", "miss"):
    _lookups.labels(_outcome)  # so that a rate has something to begin with


def heard(model: str, priority: Priority, event: Event) -> None:
    """Count an answer by its last event; others count nothing. Titles are answers, too, of the class
    `background`."""
    if not isinstance(event, TERMINAL):
        return
    if isinstance(event, Failed) and event.code == UnknownModel.code:
        model = ""  # a caller may name as many as there are texts
    _answers.labels(model, priority, _outcome_of(event)).inc()
    if isinstance(event, Finished | Stopped):
        _count_tokens(model, priority, event)


def looked_up(similarity: float | None) -> None:
    """In the cache of answers. None: nothing fits; 1: the same question."""
    outcome = "miss" if similarity is None else "same" if similarity >= 1 else "similar"
    _lookups.labels(outcome).inc()


def judged(stage: str, action: str, away: Iterable[str]) -> None:
    """A verdict, and the classifiers that had no part in it: names of the configuration."""
    _verdicts.labels(stage, action).inc()
    for classifier in away:
        _away.labels(classifier).inc()


def rated(model: str, rating: str) -> None:
    """An answer, by its reader; a change of mind counts again."""
    _ratings.labels(model, rating).inc()


def _outcome_of(event: Event) -> str:
    if isinstance(event, Finished):
        return event.reason
    if isinstance(event, Failed):
        return (
            event.code if event.code in _CODES else "failed"
        )  # other servers have codes of their own
    return type(event).__name__.lower()


def _codes(kind: type[EngineError]) -> Iterator[str]:
    yield kind.code
    for each in kind.__subclasses__():
        yield from _codes(each)


_CODES = frozenset(_codes(EngineError))


def _count_tokens(model: str, priority: Priority, end: Finished | Stopped) -> None:
    usage, timings = end.usage, end.timings
    _tokens.labels(model, priority, "prompt").inc(usage.prompt_tokens)
    _tokens.labels(model, priority, "cached").inc(usage.cached_tokens)
    _tokens.labels(model, priority, "completion").inc(usage.completion_tokens)
    if timings.ttft_ms:
        _ttft.labels(model, priority).observe(timings.ttft_ms / 1e3)
    if usage.completion_tokens:  # an answer from the cache has asked no engine
        _queued.labels(model, priority).observe(timings.queued_ms / 1e3)
    if usage.completion_tokens > 1:
        _decode.labels(model, priority).observe(
            timings.decode_ms / 1e3 / (usage.completion_tokens - 1)
        )
