"""The configured classifiers, as everything that judges texts asks them."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from chat import moderating
from chat.engine import close_engine
from inference import Caller, EngineError
from moderation.categories import CATEGORIES
from moderation.classifiers.spec import BuiltIn, LabelModel, ModerationServer
from moderation.rules import Rule
from tests.chat.api_caller import Caller as ApiCaller
from tests.upstream_server import UpstreamServer, status

ALICE = Caller("alice")


@pytest.fixture
def server(settings: Any) -> Iterator[UpstreamServer]:
    with UpstreamServer() as server:
        settings.MODERATION = (ModerationServer(server.url),)
        yield server


@pytest.fixture(autouse=True)
async def _anew() -> AsyncIterator[None]:
    yield
    await moderating.close_screener()
    await close_engine()
    moderating.use_rules([])


def _says(**scores: float) -> Any:
    return status(200, {"results": [{"category_scores": scores}]})


async def test_the_configured_classifiers_are_asked(server: UpstreamServer) -> None:
    server.answers[:] = [_says(hate=0.5), _says(hate=0.25)]
    (scores,) = await moderating.scores_of(["one"], ALICE)
    assert scores["hate"] == 0.5
    assert tuple(scores) == CATEGORIES
    await close_engine()  # a later engine has a screener of its own
    (scores,) = await moderating.scores_of(["two"], ALICE)
    assert scores["hate"] == 0.25


async def test_no_score_is_given_for_what_nobody_judged(server: UpstreamServer) -> None:
    server.answers[:] = [status(500)]
    with pytest.raises(EngineError, match="HTTP 500"):
        await moderating.scores_of(["one"], ALICE)


async def test_rules_of_the_running_process_can_be_replaced(settings: Any) -> None:
    settings.MODERATION = (BuiltIn(),)
    by_rules, _ = moderating.screener().classifiers
    before = moderating.stamp()
    moderating.use_rules([Rule("project", "secrets", "(?i)halcyon")])
    texts = ["Tell me of project Halcyon.", "My card is 4111 1111 1111 1111."]
    own, ours = await by_rules.score(texts, ALICE)
    assert own == {"secrets": 1.0, "personal_data": 0.0}
    assert ours == {"secrets": 0.0, "personal_data": 1.0}  # those of the installation stay
    assert [match.rule for match in moderating.rules().find(texts[0])] == ["project"]
    assert moderating.stamp() != before


@pytest.mark.parametrize(
    ("specs", "says"),
    [
        ((BuiltIn(),), None),
        ((), None),
        ((BuiltIn(), ModerationServer("http://127.0.0.1:9/v1")), None),
        (
            (LabelModel("nobody/here"),),
            "VITRINE_MODERATION: The model 'nobody/here' does not exist",
        ),
    ],
)
def test_what_can_never_be_asked_is_told_at_the_start(
    settings: Any, specs: tuple[Any, ...], says: str | None
) -> None:
    settings.MODERATION = specs
    found = moderating.problem()
    assert (found or "").startswith(says or "")
    assert (found is None) == (says is None)


def test_where_it_is_off_there_is_no_such_model(caller: ApiCaller) -> None:
    response = caller.post("/moderations", {"input": "x"})
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
