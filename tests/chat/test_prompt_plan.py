"""Each prompt begins with the one before it, to the token, and what is left out goes in big steps."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.events import LeftOut
from chat.prompt import assistant_messages
from chat.prompt_plan import SUMMARY_HEAD, Exchange, Limits, PromptPlan, Summary, fit, measure
from chat.tools import BUILT_IN
from inference import IMAGE_PLACE, ChatMessage, ChatTokenizer, ContextTooLong, Image
from inference.builtin import MODEL_DIR
from inference.images import pieces_of

TOOLS = [tool.schema() for tool in BUILT_IN.values()]
_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
_call = {"type": "tool_call", "id": "a", "name": "calculator", "arguments": '{"expression": "1"}'}
_result = {"type": "tool_result", "id": "a", "content": "1", "is_error": False}
_answers = st.one_of(
    st.builds(lambda text: [{"type": "text", "text": f"{text}."}], _text),
    st.builds(
        lambda before, text: [
            {"type": "reasoning", "text": before},
            *([{"type": "text", "text": before}] if before else []),
            _call,
            _result,
            {"type": "text", "text": f"{text}."},
        ],
        _text,
        _text,
    ),
)
_turns = st.lists(
    st.tuples(_text.map(lambda text: f"{text}?"), _answers, st.booleans(), _text),
    min_size=2,
    max_size=10,
)


@cache
def _tokenizer() -> ChatTokenizer:
    return ChatTokenizer.load(MODEL_DIR)


def _encode(messages: list[ChatMessage]) -> tuple[int, ...]:
    return _tokenizer().encode_chat(messages, tools=TOOLS)


def _plan(exchanges: list[Exchange], **fields: object) -> PromptPlan:
    return PromptPlan(tuple(exchanges), **fields)  # type: ignore[arg-type]


@settings(max_examples=25)
@given(_turns, _text, _text, st.booleans())
def test_a_prompt_begins_with_the_one_before_unless_something_was_cut(
    turns: list[tuple[str, list[dict[str, object]], bool, str]],
    system: str,
    memory: str,
    keeps_first: bool,
) -> None:
    """Whatever is injected: tools, a memory, documents, pinned messages."""
    head = len(_encode([{"role": "system", "content": f"{system}\n\n{memory}"}]))
    limits = Limits(context_tokens=head + 700, prompt_tokens=head + 500)
    exchanges: list[Exchange] = []
    before: tuple[int, ...] = ()
    left_out: LeftOut | None = None
    for number, (question, parts, is_pinned, documents) in enumerate(turns):
        asked = Exchange(str(number), question, documents=documents, is_pinned=is_pinned)
        plan = _plan([*exchanges, asked], system=system, memory=memory, keeps_first=keeps_first)
        plan = plan.showing(left_out) if left_out else plan
        shown, ids = fit(plan, _encode, limits)
        assert len(ids) <= limits.prompt_tokens
        if shown.left_out == plan.left_out and number:
            assert ids[: len(before)] == before
        elif number and not any(pinned for _, _, pinned, _ in turns):
            at_least = len(_encode(shown.newest(1).messages()))
            assert len(ids) <= max(limits.prompt_tokens // 2, at_least)
        before, left_out = ids, shown.left_out
        exchanges.append(replace(asked, reply=tuple(assistant_messages(parts))))


def _long_chat(num_exchanges: int, num_words: int = 20) -> list[Exchange]:
    reply = ({"role": "assistant", "content": "word " * num_words},)
    return [Exchange(str(n), f"question {n}", reply, num_messages=2) for n in range(num_exchanges)]


def test_what_begins_at_what_is_taken_out_begins_behind_it() -> None:
    told, newer = Summary("a", "Of the first.", "1"), Summary("b", "Of more.", "3")
    plan = replace(_plan(_long_chat(5)), start=3, summary=newer, summaries=(told, newer))
    left = plan.without({"1", "b"})
    assert [one.id for one in left.exchanges] == ["0", "2", "3", "4"]
    assert (left.start, left.stopped) == (2, ("1",))
    assert left.summaries == (replace(told, until="2"),)
    assert left.summary is None
    assert plan.without({"1"}).summary == newer
    begun = Summary("so far", "It is being written.", "3")
    assert replace(plan, summary=begun).without({"3"}).summary == replace(begun, until="4")
    assert replace(plan, summary=begun).without({"3", "so far"}).summary is None


def test_what_was_stopped_is_shown_once_no_policy_stops_it() -> None:
    plan = _plan(_long_chat(4))
    left_out = plan.without({"0"}).left_out
    assert left_out == LeftOut("1", 0, stopped=("0",))
    assert plan.showing(left_out) == plan
    assert plan.showing(replace(left_out, stopped=())) == plan, "as it is imported"
    told = replace(plan, summaries=(Summary("a", "They met.", "1"),)).summarised()
    assert told is not None
    left_out = told.without({"0"}).left_out
    assert left_out == LeftOut("1", 0, "a", ("0",))
    assert told.showing(left_out) == told, "a summary tells of it"


def test_what_only_pinned_messages_stand_before_is_shown_as_before() -> None:
    plan = _plan([replace(one, is_pinned=one.id < "2") for one in _long_chat(5)])
    left_out = replace(plan, start=2).left_out
    assert left_out == LeftOut("2", 0)
    assert plan.showing(left_out).messages() == replace(plan, start=2).messages()
    left_out = replace(plan, start=3).left_out
    assert left_out == LeftOut("3", 2)
    assert plan.showing(left_out) == replace(plan, start=3)


def test_a_cut_leaves_room_for_many_turns() -> None:
    limits = Limits(context_tokens=2048, prompt_tokens=1536)
    left_out: LeftOut | None = None
    num_cuts = 0
    for number in range(1, 200):
        plan = _plan(_long_chat(number))
        plan = plan.showing(left_out) if left_out else plan
        shown, _ = fit(plan, _encode, limits)
        num_cuts += shown.start != plan.start
        left_out = shown.left_out
    turn_tokens = (
        len(_encode(_plan(_long_chat(22)).messages()))
        - len(_encode(_plan(_long_chat(2)).messages()))
    ) / 20
    assert 2 <= num_cuts <= 200 * turn_tokens / (limits.prompt_tokens / 3)


def test_what_was_left_out_comes_back_where_there_is_much_more_room() -> None:
    narrow = Limits(1000, 700)
    before, _ = fit(_plan(_long_chat(40)), _encode, narrow)
    assert before.left_out is not None
    plan = _plan(_long_chat(41)).showing(before.left_out)
    assert fit(plan, _encode, narrow)[0].start == before.start
    num_tokens = len(_encode(_plan(_long_chat(41)).messages()))
    assert fit(plan, _encode, Limits(2 * num_tokens, 2 * num_tokens - 2))[0].start == before.start
    shown, ids = fit(plan, _encode, Limits(2 * num_tokens, 2 * num_tokens))
    assert (shown.left_out, len(ids)) == (None, num_tokens)


def test_what_is_left_out_is_told() -> None:
    plan = _plan(_long_chat(40), keeps_first=True)
    plan = replace(
        plan,
        exchanges=tuple(replace(e, is_pinned=e.id == "7") for e in plan.exchanges),
    )
    shown, _ = fit(plan, _encode, Limits(1000, 700))
    assert shown.left_out is not None
    assert shown.left_out.before == str(shown.start)
    assert shown.left_out.num_messages == 2 * (shown.start - 2)
    questions = [m["content"] for m in shown.messages() if m["role"] == "user"]
    assert questions == [f"question {n}" for n in (0, 7, *range(shown.start, 40))]


def test_a_summary_stands_in_for_what_is_left_out_and_waits_until_something_has_to_go() -> None:
    told = Summary("s1", "The user counted.", until="20")
    plan = _plan(_long_chat(30), summaries=(told,))
    shown, _ = fit(plan, _encode, Limits(100_000, 90_000))
    assert shown == plan
    shown, _ = fit(plan, _encode, Limits(1200, 900))
    assert (shown.start, shown.summary) == (20, told)
    first = shown.messages()[1]
    assert first["content"] == f"{SUMMARY_HEAD}\nThe user counted.\n\nquestion 20"
    assert shown.left_out == LeftOut("20", 40, "s1")
    again = _plan(_long_chat(31), summaries=(told,)).showing(shown.left_out)
    assert again.messages()[: len(shown.messages())] == shown.messages()
    newer = Summary("s2", "The user counted on.", until="25")
    grown = replace(again, summaries=(told, newer))
    assert fit(grown, _encode, Limits(1200, 900))[0].summary == told, "no need to change it yet"
    assert fit(replace(grown, start=25), _encode, Limits(1200, 900))[0].summary == newer, "a gap"


def test_pinned_messages_give_way_only_when_nothing_else_can() -> None:
    chat = [replace(e, is_pinned=True) for e in _long_chat(40)]
    shown, ids = fit(_plan(chat), _encode, Limits(1000, 700))
    assert len(ids) <= 700
    assert shown.messages()[-2]["content"] == "question 39"


def test_a_question_that_cannot_fit_tells_both_counts() -> None:
    plan = _plan([*_long_chat(3), Exchange("q", "word " * 2000)])
    with pytest.raises(ContextTooLong, match="holds 1000, 300 of them kept"):
        fit(plan, _encode, Limits(1000, 700))


@settings(max_examples=15)
@given(_turns, _text.filter(str.strip), _text)
def test_segments_add_up_to_the_prompt(
    turns: list[tuple[str, list[dict[str, object]], bool, str]], system: str, memory: str
) -> None:
    exchanges = [
        Exchange(str(n), question, tuple(assistant_messages(parts)), documents)
        for n, (question, parts, _, documents) in enumerate(turns)
    ]
    asked = replace(exchanges[-1], reply=())
    plan = _plan([*exchanges[:-1], asked], system=system, memory=memory)
    ids = _encode(plan.messages())
    counts = measure(plan, _encode, ids)
    assert sum(counts.values()) == len(ids)
    assert all(count >= 0 for count in counts.values())
    assert counts["system"] > 0
    assert (counts["memory"] > 0) == bool(memory.strip())
    assert counts["draft"] > 0


def test_each_segment_is_as_large_as_its_text() -> None:
    words = "one two three four five six seven eight "
    plan = _plan(
        [*_long_chat(2), Exchange("q", words, documents=words * 3)], memory=words * 2, system=words
    )
    counts = measure(plan, _encode, _encode(plan.messages()))
    size = _tokenizer().count(words)
    for name, times in (("memory", 2), ("documents", 3), ("draft", 1)):
        assert abs(counts[name] - times * size) <= 8, name  # type: ignore[index]


def test_pictures_stand_in_front_of_their_question_whatever_is_written() -> None:
    """A mark of their place that stands in a document or a question is no place of one of them."""
    image = Image("data:image/png;base64,")
    exchange = Exchange("q", f"a{IMAGE_PLACE}b", documents=f"c{IMAGE_PLACE}d")
    (shown,) = replace(exchange, images=(image,)).messages()
    assert pieces_of(shown) == [image, "cd\n\nab"]
    (plain,) = exchange.messages()
    assert "images" not in plain


def test_all_exchanges_that_are_shown_are_told() -> None:
    exchanges = tuple(Exchange(str(n), str(n), is_pinned=n == 2) for n in range(6))
    plan = PromptPlan(exchanges, start=4)
    assert [one.id for one in plan.shown] == ["2", "4", "5"]
    assert [one.id for one in replace(plan, keeps_first=True).shown] == ["0", "2", "4", "5"]
