"""What is taken out of a text, and where it cannot be."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from chat import (
    answer_cache,
    moderating,
    orchestrator,
    screening,
)
from chat.answer_state import AnswerState
from chat.events import (
    Delta,
)
from chat.prompt_plan import Exchange, PromptPlan
from chat.screen import MAX_KEPT_CHARS, Screen
from chat.spans import Clock
from moderation.categories import CATEGORIES
from moderation.classifiers.screener import Report, Screening
from tests.chat.screens import KEY, Kept, an_answer, said_in, screen


async def test_what_no_rule_has_matched_cannot_be_redacted(
    judging: asyncio.Event, kept: Kept
) -> None:
    judging.set()
    outcome = await screen({"input": {"illicit": {"redact": 0.5}}}).judge("input", ["bad"])
    assert outcome.verdict.action == "block"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (f"The key is {KEY}.", "redact"),
        (" ".join(KEY), "block"),
        (f"The key is {KEY}. Or {' '.join(KEY)}", "block"),
    ],
)
async def test_what_is_in_disguise_cannot_be_redacted(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, text: str, action: str
) -> None:
    async def scored(texts: Sequence[str], caller: Any) -> Screening:
        nothing = dict.fromkeys(CATEGORIES, 0.0)
        scores = tuple({**nothing, **moderating.found_by_rules(one)} for one in texts)
        return Screening(scores, (Report("rules", 1.0, scores),))

    monkeypatch.setattr(moderating, "screen", scored)
    outcome = await screen({"input": {"secrets": {"redact": 0.5}}}).judge("input", [text])
    assert outcome.verdict.action == action


@pytest.mark.usefixtures("ruled")
async def test_the_stricter_threshold_counts_before_anything_is_taken_out(kept: Kept) -> None:
    one = screen({"input": {"secrets": {"redact": 0.5, "block": 0.9}}})
    outcome = await one.judge("input", [f"The key is {KEY}."])
    assert outcome.verdict.action == "block"


@pytest.mark.parametrize("action", ["note", "redact", "block"])
async def test_no_rule_reads_a_long_text_where_everybody_waits(
    judging: asyncio.Event, kept: Kept, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """Of letters that have to be looked at one by one it takes a tenth of a second for each look."""
    judging.set()
    rules, readers = moderating.rules(), list[str]()

    def find(text: str) -> Any:
        if len(text) > MAX_KEPT_CHARS:
            readers.append(threading.current_thread().name)
        return rules.find(text)

    monkeypatch.setattr(moderating, "rules", lambda: SimpleNamespace(find=find))
    one = screen({"input": {"illicit": {action: 0.5}}})
    text = "Das ist bad für die Möhren. " * 5_000
    await one.decide("input", await one.judge("input", [text]))
    request = replace(one.request, messages=[{"role": "user", "content": text}])
    async with aclosing(orchestrator.answer(request)) as events:
        monkeypatch.setattr(orchestrator, "screen_of", AsyncMock(return_value=one))
        await anext(events)
    assert bool(readers) == (action == "redact")
    assert all(name.startswith("off-loop") for name in readers)


def test_a_secret_of_a_document_is_in_no_later_prompt_either() -> None:
    one = screen({"documents": {"secrets": {"redact": 0.5}}})
    found = Exchange("1", "What is the key?", documents=f"[1] keys.txt\n{KEY}")
    plan = PromptPlan((found, Exchange("2", "Say it again.")))
    state = AnswerState(replace(one.request, plan=plan), one)
    state.redact()
    (content,) = [m["content"] for m in state.messages if "What is the key?" in m["content"]]
    assert KEY not in content
    assert "[1] keys.txt\n[█" in content


@pytest.mark.usefixtures("ruled")
async def test_what_is_said_again_is_not_looked_through_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Mock(side_effect=moderating.found_by_rules)
    monkeypatch.setattr(moderating, "found_by_rules", looked)
    monkeypatch.setattr(moderating, "_stamp", 1_000_000)
    one = screen({"input": {"secrets": {"redact": 0.5}}})
    texts = [f"The key is {KEY}.", f"It is {KEY}."]
    for asked in (texts[:1], texts, texts):
        assert (await Screen(one.request, one.chosen).judge("input", asked)).redacts
    assert looked.call_count == 2
    monkeypatch.setattr(moderating, "_stamp", 1_000_001)
    await one.judge("input", texts)
    assert looked.call_count == 4, "there are other rules"
    await screen({"input": {"secrets": {"redact": 0.5}}}).judge("input", texts)
    assert looked.call_count == 6, "of somebody else nothing is known"


def test_a_private_key_is_taken_out_with_all_of_its_lines() -> None:
    body = "\n".join(["MIIEpAIBAAKCAQEA7bq0" * 3] * 20)
    text = f"Here:\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nDone."
    redacted = screen({"input": {"secrets": {"redact": 0.5}}}).redacted("input", text)
    assert "MIIE" not in redacted
    assert redacted.startswith("Here:\n")
    assert redacted.endswith("\nDone.")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("4111 1111 1111 1111 12/27 123", "[████████] 12/27 123"),
        ("ES9121000418450200051332 bitte", "[████████] bitte"),
    ],
)
def test_what_stands_beside_a_number_keeps_it_from_no_redaction(text: str, redacted: str) -> None:
    one = screen({"input": {"personal_data": {"redact": 0.5}}})
    assert one.redacted("input", text) == redacted


@pytest.mark.usefixtures("ruled")
@pytest.mark.parametrize("size", [7, 64, 333])
async def test_a_private_key_is_taken_out_of_an_answer_to_its_end(kept: Kept, size: int) -> None:
    """It has no sentence that it could wait for, and more lines than what is held back."""
    lines = [f"MII{number:03}EpAIBAAKCAQEA7bq0" * 3 for number in range(60)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    text = f"Here it is.\n{key}\n\nKeep it safe. Bye."
    one = screen({"output": {"secrets": {"redact": 0.5}}})
    answer = lambda: an_answer(*(text[at : at + size] for at in range(0, len(text), size)))  # noqa: E731
    seen = [event async for event in screening.screened(one, ["hi"], answer, Clock())]
    shown = said_in(seen, "text")
    assert "MII" not in shown
    assert shown.startswith("Here it is.\n[█")
    assert shown.endswith("\n\nKeep it safe. Bye.")


@pytest.mark.usefixtures("ruled")
async def test_what_a_policy_takes_out_is_not_kept_for_others(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached: list[str] = []

    async def keep(asked: Any, text: str, *rest: Any) -> None:
        cached.append(text)

    monkeypatch.setattr(answer_cache, "keep", keep)
    one = screen({"output": {"secrets": {"redact": 0.5}}})
    asked: Any = None
    await orchestrator._keep(AnswerState(one.request, one), asked, [Delta(f"It is {KEY}.", 0)])
    assert not cached
