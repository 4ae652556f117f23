"""Filters over attributes: each as it says, against the same in Python."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.attributes import Comparison, Compound, matching
from retrieval.models import Collection, Document
from tests.retrieval.conftest import Add
from webapp.models import User
from webapp.tenancy import as_user

pytestmark = pytest.mark.django_db

ROWS: dict[str, dict[str, Any]] = {
    "a": {"year": 2024, "kind": "report", "final": True},
    "b": {"year": 2025.5, "kind": "letter", "final": False, 'it\'s "odd" %s __in': "x"},
    "c": {"year": "2024", "kind": "report"},
    "d": {},
    "e": {"year": -1, "kind": "", "final": 1},
}


@pytest.fixture
def found(notes: Collection, alice: User) -> Callable[[Comparison | Compound], str]:
    with as_user(alice.pk):
        for name, attributes in ROWS.items():
            Document.objects.create(collection=notes, name=name, attributes=attributes)

    def find(wanted: Comparison | Compound) -> str:
        with as_user(alice.pk):
            return "".join(sorted(row.name for row in matching(notes, wanted)))

    return find


@pytest.mark.parametrize(
    ("key", "operator", "value", "names"),
    [
        ("year", "eq", 2024, "a"),
        ("year", "eq", 2024.0, "a"),
        ("year", "eq", "2024", "c"),
        ("year", "ne", 2024, "bcde"),
        ("year", "gt", 2024, "b"),
        ("year", "gte", 2024, "ab"),
        ("year", "lt", 2024, "e"),
        ("year", "lte", 2024, "ae"),
        ("year", "gt", "2", "c"),
        ("kind", "gt", "letter", "ac"),
        ("kind", "eq", "", "e"),
        ("final", "eq", True, "a"),
        ("final", "ne", True, "bcde"),
        ("final", "eq", 1, "e"),
        ("kind", "in", ["report", "letter"], "abc"),
        ("kind", "nin", ["report", "letter"], "de"),
        ("kind", "in", [], ""),
        ("kind", "nin", [], "abcde"),
        ("year", "in", [2024, "2024"], "ac"),
        ('it\'s "odd" %s __in', "eq", "x", "b"),
        ("none", "eq", "x", ""),
        ("none", "ne", "x", "abcde"),
        ("none", "gt", 0, ""),
        ("0", "eq", "x", ""),
    ],
)
def test_a_comparison(found: Any, key: str, operator: Any, value: Any, names: str) -> None:
    assert found(Comparison(key, operator, value)) == names


def test_compounds(found: Any) -> None:
    report, new = Comparison("kind", "eq", "report"), Comparison("year", "gte", 2024)
    assert found(Compound("and", [report, new])) == "a"
    assert found(Compound("or", [report, new])) == "abc"
    assert (
        found(Compound("or", [Compound("and", [report, new]), Comparison("year", "eq", -1)]))
        == "ae"
    )
    assert found(Compound("and", [])) == "abcde"
    assert found(Compound("or", [])) == ""


_VALUES = st.sampled_from([2024, 2025.5, "2024", "report", "", True, False, -1])
_COMPARISONS = st.builds(
    Comparison,
    st.sampled_from(["year", "kind", "final", "none"]),
    st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]),
    _VALUES,
)
_WANTED = st.recursive(
    _COMPARISONS,
    lambda parts: st.builds(Compound, st.sampled_from(["and", "or"]), st.lists(parts, max_size=3)),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(wanted=_WANTED)
def test_it_is_as_python_has_it(found: Any, wanted: Comparison | Compound) -> None:
    assert found(wanted) == "".join(name for name, row in ROWS.items() if _holds(wanted, row))


def _holds(wanted: Comparison | Compound, row: dict[str, Any]) -> bool:
    if isinstance(wanted, Compound):
        parts = [_holds(part, row) for part in wanted.parts]
        return all(parts) if wanted.operator == "and" else any(parts)
    has, value = row.get(wanted.key), wanted.value
    alike = _kind(has) == _kind(value)
    if wanted.operator in ("eq", "ne"):
        return (alike and has == value) == (wanted.operator == "eq")
    if not alike:
        return False
    return {
        "gt": has > value,
        "gte": has >= value,
        "lt": has < value,
        "lte": has <= value,
    }[wanted.operator]


def _kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def test_what_others_have_is_not_filtered(found: Any, notes: Collection, charlie: User) -> None:
    with as_user(charlie.pk):
        assert not matching(notes, Comparison("none", "ne", "x")).exists()


def test_attributes_of_found_passages_stay(notes: Collection, add: Add, alice: User) -> None:
    document = add(notes, "pears", attributes={"kind": "fruit"})
    with as_user(alice.pk):
        assert list(matching(notes, Comparison("kind", "eq", "fruit"))) == [document]
