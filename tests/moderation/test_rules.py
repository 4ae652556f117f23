"""Patterns of operators: what they find, what the built-in ones find, and that none takes long."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moderation.builtin_rules import BUILT_IN
from moderation.rules import (
    CHECKS,
    MAX_MATCHES,
    MAX_TRIED,
    BadRule,
    Match,
    Rule,
    Rules,
    compiled,
    tried,
)

OURS = Rules(BUILT_IN)
KEY = "Zq81LmPw07RtYu5KxVb3NcJd9HsGf2Ae"


def found(text: str) -> list[tuple[str, str]]:
    return [(match.rule, text[match.start : match.end]) for match in OURS.find(text)]


@pytest.mark.parametrize(
    ("text", "rule", "what"),
    [
        ("mail bob@example.org today", "e-mail address", "bob@example.org"),
        ("call +49 30 1234567.", "telephone number", "+49 30 1234567"),
        ("call (030) 123 45 67", "telephone number", "(030) 123 45 67"),
        ("4111 1111 1111 1111", "payment card", "4111 1111 1111 1111"),
        ("5500-0000-0000-0004", "payment card", "5500-0000-0000-0004"),
        ("to DE89 3704 0044 0532 0130 00", "bank account (IBAN)", "DE89 3704 0044 0532 0130 00"),
        ("gb29nwbk60161331926819", "bank account (IBAN)", "gb29nwbk60161331926819"),
        ("123-45-6789", "social security number", "123-45-6789"),
        ("AKIAIOSFODNN7EXAMPLE", "AWS access key", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_" + "a1B2" * 9, "GitHub token", "ghp_" + "a1B2" * 9),
        ("-----BEGIN RSA PRIVATE KEY-----", "private key", "-----BEGIN RSA PRIVATE KEY-----"),
        ("vt_" + KEY, "Vitrine key", "vt_" + KEY),
        ("postgres://me:hunter22@db/x", "password in an address", "postgres://me:hunter22@db"),
        ("api_key=Zq81LmPw07", "value of a secret", "api_key=Zq81LmPw07"),
    ],
)
def test_what_has_the_shape_is_found_where_it_is(text: str, rule: str, what: str) -> None:
    assert (rule, what) in found(text)


CARD, ACCOUNT = "4111 1111 1111 1111", "ES91 2100 0418 4502 0005 1332"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"{CARD} 12/27 123", CARD),
        (f"{CARD} 123", CARD),
        (f"4111111111111111 123 {CARD}", f"4111111111111111|{CARD}"),
        (f"exp 12/27 {CARD}", CARD),
        (f"Order 2 {CARD}", CARD),
        (f"Order 12345 {CARD}, please", CARD),
        (f"{ACCOUNT} please", ACCOUNT),
        ("ES9121000418450200051332 bitte", "ES9121000418450200051332"),
        ("BE68 5390 0754 7034 Danke", "BE68 5390 0754 7034"),
        ("AB13 BE68 5390 0754 7034 Danke", "BE68 5390 0754 7034"),
    ],
)
def test_a_number_is_found_beside_what_could_be_a_part_of_it(text: str, what: str) -> None:
    assert [found for _, found in found(text)] == what.split("|")


def test_what_a_check_refuses_costs_no_more_the_longer_it_is() -> None:
    started_s = time.monotonic()
    assert OURS.find(" ".join(["1234"] * 4 + ["5"]) * 3_000 + " ab12" * 10_000) is not None
    assert time.monotonic() - started_s < 5


@pytest.mark.parametrize(
    ("check", "text"), [("card", "1234 5678 9012 3456 7890 "), ("iban", "ab12 ")]
)
def test_what_a_check_refuses_is_tried_in_parts_only_so_often(
    monkeypatch: pytest.MonkeyPatch, check: str, text: str
) -> None:
    tried: list[str] = []
    is_valid = CHECKS[check]

    def counted(run: str) -> bool:
        tried.append(run)
        return is_valid(run)

    monkeypatch.setitem(CHECKS, check, counted)
    text *= 40_000 // len(text)
    assert found(text) == []
    assert len(tried) <= MAX_TRIED + len(text) // 15, "and each whole match"
    assert [what for _, what in found(f"{text * 3} - {CARD}, {ACCOUNT}.")] == [CARD, ACCOUNT]


@pytest.mark.parametrize("check", ["card", "iban"])
@pytest.mark.parametrize(
    "text", ["", "AB12 3456_7890 1234", "AB12-3456-7890-1234", "ß²34 5678 9012 345"]
)
def test_checks_take_any_text(check: str, text: str) -> None:
    assert not CHECKS[check](text)


@pytest.mark.parametrize(
    "text",
    [
        "How do I kill a process that listens on port 8000?",
        "The password is too long; password: required",
        "Order 4111 1111 1111 1112, ISBN 978-3-16-148410-0, 2026-11-23 10:15:00",
        "1234567890123456 and 0000 0000 0000 0000",
        "000-12-3456, 666-12-3456, 900-12-3456, 123-00-4567",
        "DE00 3704 0044 0532 0130 00",
        "https://example.org/a:b@c, me@localhost",
        "a task-oriented sk-learn-extension-for-everybody",
        "version 1.2.3+45, 3 of 2000 in (1990)",
        "14 02 33 71 90 25 46 18 and 2026 11 26 14 05 33 12",
    ],
)
def test_what_only_looks_like_it_is_not(text: str) -> None:
    assert found(text) == []


def test_what_is_hidden_from_patterns_is_found_where_it_was_written() -> None:
    text = "to b\u200bo\u00adb@ex\u0430mple.org \U000e0041!"
    (match,) = OURS.find(text)
    assert text[match.start : match.end] == "b\u200bo\u00adb@ex\u0430mple.org"


def test_scores_are_the_highest_of_each_category_text_by_text() -> None:
    texts = ["bob@example.org, 4111 1111 1111 1111", "nothing here", ""]
    assert OURS.scores(texts) == [{"personal_data": 1.0}, {}, {}]


_WRITTEN = [
    "mail bob@example.org today, or call +49 30 1234567.",
    "4111 1111 1111 1111 12.03.2024",
    "api_key=Zq81LmPw07",
    "AKIAIOSFODNN7EXAMPLE",
    " ",
    "\n",
]


@given(
    st.lists(st.one_of(st.text(max_size=20), st.sampled_from(_WRITTEN)), max_size=8).map("".join)
)
def test_all_find_what_each_alone_finds(text: str) -> None:
    """What none of them finds is told by one pass for all."""
    expected = [match for rule in BUILT_IN for match in Rules([rule]).find(text)]
    assert OURS.find(text) == sorted(expected, key=lambda one: (one.start, one.end, one.rule))


@pytest.mark.parametrize(
    "others",
    [["(?P<a>x)", "(?P<a>y)"], [r"[\s\S]{1000}"] * 25, ["(?i)heron", "^b"], [r"\QC++", r"\Qz\E"]],
    ids=["names", "large", "flags", "quotes"],
)
def test_patterns_that_cannot_be_one_are_tried_each(others: list[str]) -> None:
    rules = Rules([Rule(str(at), "hate", one) for at, one in enumerate([*others, "Y1|y"])])
    assert [match.rule for match in rules.find("y")] == [
        str(at) for at, one in enumerate([*others, "Y1|y"]) if "y" in one
    ]
    assert rules.find("Y") == []


@given(st.text(max_size=300))
def test_matches_lie_in_the_text_and_in_order(text: str) -> None:
    rules = Rules([Rule("letters", "hate", "[a-z]+"), Rule("two", "violence", "..")])
    matches = rules.find(text)
    assert matches == sorted(matches, key=lambda match: (match.start, match.end, match.rule))
    assert all(0 <= match.start < match.end <= len(text) for match in matches)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*b", r"(.*)*x", r"(?:\w+\s?)+!"])
def test_a_pattern_that_takes_years_elsewhere_takes_moments_here(pattern: str) -> None:
    rules = Rules([Rule("bomb", "hate", pattern)])
    started_s = time.monotonic()
    rules.find("a" * 50_000 + "c")
    assert time.monotonic() - started_s < 5


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule("x", "hate", ""), "empty"),
        (Rule("x", "hate", "   "), "empty"),
        (Rule("x", "hate", "["), "missing ]"),
        (Rule("x", "hate", "(?=a)b"), "no pattern of RE2"),
        (Rule("x", "hate", r"(a)\1"), "no pattern of RE2"),
        (Rule("x", "hate", "a*"), "everywhere"),
        (Rule("x", "hate", "(a{500}){100}"), "no pattern of RE2"),
        (Rule("x", "hate", r"(?:\p{L}{500}\d{500}){2}"), "no pattern of RE2"),
        (Rule("x", "hate", "a" * 1001), "longer than"),
        (Rule("x", "hate", "a", probability=0), "above 0"),
        (Rule("x", "hate", "a", check="none"), "no check"),
    ],
)
def test_a_rule_that_cannot_be_used_says_why(rule: Rule, words: str) -> None:
    with pytest.raises(BadRule, match=words.replace("]", r"\]")):
        compiled(rule)
    with pytest.raises(BadRule):
        Rules([rule])


@pytest.mark.parametrize("pattern", [r"[\s\S]{1000}" * 3, r"\w{900} ?" * 5])
def test_a_costly_pattern_is_not_saved_and_one_in_force_goes_on(pattern: str) -> None:
    rule = Rule("x", "hate", pattern)
    Rules([rule])
    with pytest.raises(BadRule, match="too costly"):
        tried(rule)
    assert all(tried(one) for one in BUILT_IN)


def test_many_matches_hide_nothing() -> None:
    own = Rules([*BUILT_IN, Rule("mine", "illicit", "crimson heron")])
    text = f"{'a@example.org ' * (MAX_MATCHES + 10)}crimson heron"
    assert own.scores([text])[0]["illicit"] == 1.0
    by_rule = {match.rule: match for match in own.find(text)}
    assert text[by_rule["mine"].start :] == "crimson heron"
    assert by_rule["e-mail address"].end == len(text), (
        "of what is not counted, all is taken for one"
    )
    assert len(Rules([Rule("all", "hate", ".")]).find("x" * 2 * MAX_MATCHES)) == MAX_MATCHES
    assert Rules([Rule("edge", "hate", "y")]).find("x") == []


def test_what_is_empty_is_no_match() -> None:
    assert Rules([Rule("edge", "hate", r"x|\b")]).find("a x") == [Match("edge", "hate", 1.0, 2, 3)]
    assert Rules([]).find("x") == []


def test_the_built_in_rules_have_names_of_their_own_and_checks_that_there_are() -> None:
    assert len({rule.name for rule in BUILT_IN}) == len(BUILT_IN)
    assert {rule.check for rule in BUILT_IN} - {""} <= CHECKS.keys()
