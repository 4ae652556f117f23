"""Children and the shown branch follow from the rows alone, whatever order they come in."""

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from chat import branches
from chat.ids import uuid7
from chat.models import Message, Role

EARLY = datetime(2026, 11, 1, tzinfo=UTC)


@st.composite
def trees(draw: st.DrawFn) -> list[Message]:
    """Rows of a conversation, oldest first: answers follow questions, some are deleted."""
    rows: list[Message] = []
    for number in range(draw(st.integers(0, 14))):
        parent = draw(st.sampled_from([None, *rows]))
        is_answer = parent is not None and parent.role == Role.USER
        rows.append(
            Message(
                id=uuid7(),
                parent_id=parent.pk if parent else None,
                role=Role.ASSISTANT if is_answer else Role.USER,
                chosen=draw(st.integers(0, 4)),
                deleted_at=draw(st.sampled_from([None, None, None, EARLY])),
                created_at=EARLY + timedelta(seconds=number),
            )
        )
    return rows


@given(trees())
def test_the_shown_branch_follows_the_highest_choice_to_an_end(rows: list[Message]) -> None:
    path = branches.chosen_path(rows)
    siblings = branches.children_of(rows)
    assert [row.parent_id for row in path] == [None, *(row.pk for row in path[:-1])][: len(path)]
    for row in path:
        assert row.chosen == max(other.chosen for other in siblings[row.parent_id])
    assert not path or path[-1].pk not in siblings
    assert bool(path) == bool(rows)


@given(trees(), st.randoms())
def test_nothing_but_the_order_among_equals_depends_on_the_order_of_rows(
    rows: list[Message], random: Random
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    children = branches.children_of(rows)
    for parent, siblings in branches.children_of(shuffled).items():
        assert {row.pk for row in siblings} == {row.pk for row in children[parent]}
    for row in rows:
        path = branches.path_to(shuffled, row.pk)
        assert [each.pk for each in path] == [each.pk for each in branches.path_to(rows, row.pk)]
        held = branches.chosen_path(shuffled, through=row.pk)
        assert row.pk in {each.pk for each in held}


@given(trees())
def test_what_is_below_is_what_leads_through_it(rows: list[Message]) -> None:
    for row in rows:
        below = {each.pk for each in branches.below(rows, row.pk)}
        through = {
            each.pk for each in rows if each.pk != row.pk and row in branches.path_to(rows, each.pk)
        }
        assert below == through


@given(trees())
def test_a_deleted_message_is_seen_only_as_the_place_of_replies(rows: list[Message]) -> None:
    seen = {row.pk for row in branches.visible(rows)}
    for row in rows:
        is_place = any(not each.deleted_at for each in branches.below(rows, row.pk))
        assert (row.pk in seen) == (not row.deleted_at or is_place)
