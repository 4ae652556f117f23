"""From the configuration to a screener of what it names."""

from collections.abc import Iterator, Sequence

from inference import Engine
from moderation.classifiers.by_guard import GuardClassifier
from moderation.classifiers.by_heads import HeadClassifier
from moderation.classifiers.by_labels import LabelClassifier
from moderation.classifiers.by_rules import RuleClassifier
from moderation.classifiers.by_server import ServerClassifier
from moderation.classifiers.interface import Classifier
from moderation.classifiers.screener import Screener
from moderation.classifiers.spec import (
    BuiltIn,
    ClassifierSpec,
    GuardModel,
    LabelModel,
    ModerationServer,
)


def made(
    specs: Sequence[ClassifierSpec], engine: Engine, rules: RuleClassifier | None = None
) -> Screener:
    """A screener of these. `rules` are that part of the built-in ones which can be changed while it
    runs; without, there are those of the installation."""
    rules = rules or RuleClassifier()
    return Screener([one for spec in specs for one in _made(spec, engine, rules)])


def _made(spec: ClassifierSpec, engine: Engine, rules: RuleClassifier) -> Iterator[Classifier]:
    match spec:
        case BuiltIn():
            yield rules  # apart from the heads: secrets are found where the engine is away, too
            yield HeadClassifier(engine)
        case LabelModel(model=model, labels=labels):
            yield LabelClassifier(engine, model, labels)
        case GuardModel(model=model, family=family):
            yield GuardClassifier(engine, model, family)
        case ModerationServer():
            yield ServerClassifier(spec)
