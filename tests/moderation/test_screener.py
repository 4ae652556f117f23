"""All classifiers at once: the worst counts, and who failed is told."""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from inference import Caller, EngineError
from moderation import normalising
from moderation import rules as rules_of_operators
from moderation.builtin_rules import BUILT_IN
from moderation.categories import CATEGORIES, Scores
from moderation.classifiers import by_rules
from moderation.classifiers.by_rules import RuleClassifier
from moderation.classifiers.screener import Screener
from moderation.normalising import Normal, normalised
from moderation.rules import BadRule, Rule

CALLER = Caller("alice")


@dataclass
class Fixed:
    """Says the same of each text, after a while."""

    name: str
    scores: Scores
    after_s: float = 0.0

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        await asyncio.sleep(self.after_s)
        return [self.scores] * len(texts)


@dataclass
class Broken:
    name: str
    error: Exception

    async def score(self, texts: Sequence[str], caller: Caller) -> list[Scores]:
        raise self.error

    async def check(self) -> None:
        raise self.error


async def test_the_worst_of_all_counts() -> None:
    one, two = Fixed("one", {"hate": 0.2, "sexual": 0.7}), Fixed("two", {"hate": 0.6})
    screening = await Screener([one, two]).screen(["a", "b"], CALLER)
    assert len(screening.scores) == 2
    for scores in screening.scores:
        assert tuple(scores) == CATEGORIES
        assert {name: score for name, score in scores.items() if score} == {
            "hate": 0.6,
            "sexual": 0.7,
        }
    assert [report.classifier for report in screening.reports] == ["one", "two"]
    assert screening.reports[1].scores == ({"hate": 0.6}, {"hate": 0.6})
    assert not screening.failed
    assert screening.has_answer


async def test_a_kind_counts_for_what_it_is_a_kind_of() -> None:
    screening = await Screener([Fixed("one", {"hate": 0.1, "hate/threatening": 0.8})]).screen(
        ["a"], CALLER
    )
    assert screening.scores[0]["hate"] == 0.8


async def test_all_are_asked_at_the_same_time() -> None:
    each = [Fixed(str(at), {}, after_s=0.2) for at in range(10)]
    async with asyncio.timeout(1.5):
        screening = await Screener(each).screen(["a"], CALLER)
    assert all(150 < report.took_ms < 1500 for report in screening.reports)


async def test_one_that_fails_is_named_and_the_others_count() -> None:
    broken = Broken("broken", EngineError("It is gone."))
    screening = await Screener([broken, Fixed("one", {"hate": 0.5})]).screen(["a"], CALLER)
    assert screening.scores[0]["hate"] == 0.5
    (failed,) = screening.failed
    assert (failed.classifier, str(failed.error), failed.scores) == ("broken", "It is gone.", ())
    assert screening.has_answer


async def test_a_fault_in_one_keeps_no_other_from_judging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faulty = Broken("faulty", KeyError("secret text"))
    screening = await Screener([faulty, Fixed("one", {"hate": 0.5})]).screen(["a"], CALLER)
    assert screening.scores[0]["hate"] == 0.5
    assert str(screening.failed[0].error) == "It failed: KeyError."
    assert "faulty failed" in caplog.text


async def test_who_takes_too_long_has_failed() -> None:
    slow = Fixed("slow", {"hate": 1.0}, after_s=30)
    screening = await Screener([slow], timeout_s=0.05).screen(["a"], CALLER)
    assert screening.scores[0]["hate"] == 0
    assert "took longer than 0.05 s" in str(screening.failed[0].error)
    assert not screening.has_answer


async def test_whoever_hangs_up_hears_nothing_more() -> None:
    task = asyncio.create_task(Screener([Fixed("slow", {}, after_s=30)]).screen(["a"], CALLER))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_check_tells_of_the_first_that_is_set_up_wrongly() -> None:
    with pytest.raises(EngineError, match="It is gone"):
        await Screener([Fixed("one", {}), Broken("x", EngineError("It is gone."))]).check()
    await Screener([Fixed("one", {})]).check()


async def test_no_classifiers_find_nothing() -> None:
    screening = await Screener([]).screen(["a"], CALLER)
    assert set(screening.scores[0].values()) == {0.0}
    assert not screening.has_answer


# --- rules ----------------------------------------------------------------------------------------


async def test_rules_change_while_they_are_in_use() -> None:
    rules = RuleClassifier()
    screener = Screener([rules])

    async def found(text: str) -> dict[str, float]:
        scores = (await screener.screen([text], CALLER)).scores[0]
        return {name: score for name, score in scores.items() if score}

    card, project = "My card is 4111 1111 1111 1111.", "Tell me of project Halcyon."
    assert await found(card) == {"personal_data": 1.0}
    assert await found(project) == {}
    rules.use([Rule("project", "secrets", "(?i)halcyon", probability=0.8)])
    assert await found(card) == {}
    assert await found(project) == {"secrets": 0.8}
    with pytest.raises(BadRule):
        rules.use([Rule("good", "hate", "x"), Rule("bad", "hate", "(")])
    assert await found(project) == {"secrets": 0.8}


async def test_rules_read_a_text_as_it_is_normalised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def once(written: str) -> Normal:
        read.append(written)
        return normalised(written)

    for module in (by_rules, normalising, rules_of_operators):
        monkeypatch.setattr(module, "normalised", once)
    text = "\u0417\u043e\u00eb: 4111 1111 1111 1111"
    assert (await RuleClassifier().score([text], CALLER))[0]["personal_data"] == 1.0
    assert read == [text]


async def test_rules_may_be_of_any_category() -> None:
    rules = RuleClassifier([Rule("slur", "hate", "(?i)badword")])
    assert await rules.score(["a bad\u200bword", "fine"], CALLER) == [
        {"secrets": 0.0, "personal_data": 0.0, "hate": 1.0},
        {"secrets": 0.0, "personal_data": 0.0, "hate": 0.0},
    ]


def in_tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(one)) for one in text)


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "category"),
    [
        (in_tags("crimson heron"), "illicit"),
        (f"Hello. {in_tags('the crimson heron')}", "illicit"),
        (in_base64("where is the crimson heron"), "illicit"),
        ("c r i m s o n  h e r o n", "illicit"),
        (in_tags("AKIAIOSFODNN7EXAMPLE"), "secrets"),
        (in_base64("the key is AKIAIOSFODNN7EXAMPLE"), "secrets"),
        (" ".join("AKIAIOSFODNN7EXAMPLE"), "secrets"),
    ],
)
async def test_rules_find_what_is_said_in_disguise(text: str, category: str) -> None:
    rules = RuleClassifier([*BUILT_IN, Rule("phrase", "illicit", "(?i)crimson heron")])
    (found,) = await rules.score([text], CALLER)
    assert {name for name, score in found.items() if score} == {category}
    assert rules.rules.find(text) == [], "it has no place in what was written"
