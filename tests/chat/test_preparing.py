"""Between a saved question and its answer: imported chats can be gone on with, and what fails ends."""

from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import pytest
from django.db import OperationalError

from chat import actions, answers, budgets, history, runs
from chat.answers import Asked
from chat.models import Conversation, Message
from chat.rights import Rights
from tests.chat.test_import_formats import gpt, node
from tests.chat.test_importing import imported
from webapp.models import Tier, User
from webapp.tenancy import as_user

pytestmark = pytest.mark.django_db(transaction=True)
CODE = "import math\nprint(math.pi)"
ANALYSIS = gpt(
    node("q", None, "user", "What is pi?", create_time=1.0),
    node("call", "q", "assistant", recipient="python", content={"content_type": "code", "text": CODE}),
    node("out", "call", "tool", author={"name": "python"},
         content={"content_type": "execution_output", "text": "3.14"}),
    node("a", "out", "assistant", "About 3.14."),
)  # fmt: skip


@pytest.fixture
def leaf(alice: User) -> Iterator[Message]:
    """The last answer of an imported chat that has called a tool with code."""
    Tier.objects.filter(slug="free").update(tokens_per_day=100_000)
    imported(alice, [ANALYSIS])
    with as_user(alice.pk):
        yield Message.objects.get(text="About 3.14.")


def sent_behind(leaf: Message, user: User) -> tuple[actions.Sent, list[Asked]]:
    draft = actions.Draft(
        client_id=uuid4().hex,
        text="And e?",
        model="vitrine-small",
        conversation_id=leaf.conversation_id,
        parent_id=leaf.pk,
    )
    send = partial(actions.send_message, Rights(user), draft, lease_owner=runs.PROCESS_ID)
    return answers._with_plans(send)


def tokens_held(user: User) -> int:
    return budgets.spent_by(Rights(User.objects.get(pk=user.pk))).held_tokens


def test_a_chatgpt_chat_with_code_is_gone_on_with(alice: User, leaf: Message) -> None:
    _, (asked,) = sent_behind(leaf, alice)
    calls = [call for m in asked.plan.messages() for call in m.get("tool_calls", ())]
    assert [call["function"]["arguments"] for call in calls] == [{"input": CODE}]


def test_an_answer_that_cannot_be_prepared_ends(
    alice: User, leaf: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(history, "plan_on", fails)
    with pytest.raises(RuntimeError):
        sent_behind(leaf, alice)
    answer = Conversation.objects.get().messages.get(parent__text="And e?")
    assert answer.status == "failed"
    assert answer.generation.status == "failed"
    assert tokens_held(alice) == 0


def test_one_that_only_lacks_the_database_is_left_to_who_takes_it_up(
    alice: User, leaf: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OperationalError

    monkeypatch.setattr(history, "plan_on", fails)
    with pytest.raises(OperationalError):
        sent_behind(leaf, alice)
    assert Conversation.objects.get().messages.get(parent__text="And e?").status == "running"
