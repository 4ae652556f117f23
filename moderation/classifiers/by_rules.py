"""The rules as a classifier: those of the installation, and those of an operator."""

from collections.abc import Iterable, Sequence

from inference import Caller
from moderation.builtin_rules import BUILT_IN
from moderation.categories import RULE_CATEGORIES, Scores, worst
from moderation.classifiers.reading import for_texts
from moderation.disguises import undisguised
from moderation.normalising import judged, normalised, spelled_by_tags
from moderation.rules import Rule, Rules


class RuleClassifier:
    """Finds what has a form, also in disguise, in the time of one pass through the text for each rule,
    and one through what it says in disguise."""

    name = "rules"

    def __init__(self, rules: Iterable[Rule] = BUILT_IN) -> None:
        """Raises BadRule."""
        self.use(rules)

    def use(self, rules: Iterable[Rule]) -> None:
        """From the next text on these, and no others. Raises BadRule, and goes on with those before."""
        given = tuple(rules)
        self.rules = Rules(given)
        self._nothing = dict.fromkeys([*RULE_CATEGORIES, *(rule.category for rule in given)], 0.0)

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        nothing = self._nothing
        return [{**nothing, **found} for found in await for_texts(texts, self._found, texts)]

    def _found(self, texts: Sequence[str]) -> list[Scores]:
        return [self.found(text) for text in texts]

    def found(self, text: str) -> Scores:
        """Of each category that is found, how likely it is."""
        normal = normalised(text)
        hidden = dict.fromkeys([*spelled_by_tags(text), *undisguised(judged(text, normal))])
        return worst(self.rules.scores([normal, *hidden]))
