"""/v1/moderations with OpenAI's own client, unmodified, and what raw callers may do wrong."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from chat.openai_moderations import MAX_CHARS, MAX_INPUTS
from moderation.categories import CATEGORIES
from tests.chat.api_caller import Caller
from tests.openai_description import check, needs_description
from tests.sites import Site, SiteMaker, email_of

pytestmark = needs_description

THREAT = "I know where you live, and I am going to beat you until you cannot walk."
MORE = "I will break every bone you have. You are going to die slowly, and nobody will find you."
HARMLESS = "How do I kill a Python process that hangs?"
CARD = "My card is 4111 1111 1111 1111."


@pytest.fixture(scope="module")
def site(make_site: SiteMaker) -> Iterator[Site]:
    with make_site(VITRINE_MODERATION="builtin", VITRINE_PRELOAD="false") as site:
        site.set_up().close()
        site.execute("UPDATE webapp_tier SET requests_per_minute = NULL")
        yield site


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    return site.developers_key()


@pytest.fixture
def caller(site: Site, key: str) -> Caller:
    return Caller(site, key)


@pytest.fixture
def client(site: Site, key: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
        yield client


def test_the_client_gets_a_verdict_for_each_text(client: openai.OpenAI) -> None:
    found = client.moderations.create(input=[THREAT, HARMLESS, CARD])
    check(found.to_dict(), "CreateModerationResponse")
    assert found.id.startswith("modr-")
    threat, harmless, card = found.results
    assert threat.flagged
    assert threat.categories.violence or threat.categories.harassment_threatening
    assert not harmless.flagged
    assert card.flagged
    assert [name for name, is_it in card.categories.to_dict().items() if is_it] == ["personal_data"]
    for result in found.results:
        scores = result.category_scores.to_dict()
        assert scores.keys() == result.categories.to_dict().keys() == set(CATEGORIES)
        assert all(0 <= score <= 1 for score in scores.values())


@pytest.mark.parametrize("model", ["omni-moderation-latest", "text-moderation-stable", None])
def test_every_shape_of_input_is_understood(client: openai.OpenAI, model: str | None) -> None:
    more: dict[str, Any] = {"model": model} if model else {}
    (one,) = client.moderations.create(input=THREAT, **more).results
    (same,) = client.moderations.create(input=[{"type": "text", "text": THREAT}], **more).results
    assert one.category_scores == same.category_scores
    parts = [{"type": "text", "text": HARMLESS}, {"type": "text", "text": THREAT}]
    (both,) = client.moderations.create(input=parts, **more).results  # type: ignore[arg-type]
    assert both.flagged


def test_a_text_is_as_bad_as_its_worst_part(client: openai.OpenAI) -> None:
    peaceful = "The harbour was built in 1890, and handled coal and timber from the north. "
    long = peaceful * 150
    texts = [long, f"{long}{THREAT} {MORE} {peaceful * 30}", f"{long}{CARD}"]
    calm, planted, paid = client.moderations.create(input=texts).results
    assert not calm.flagged
    assert planted.flagged
    assert planted.categories.violence or planted.categories.harassment_threatening
    assert paid.categories.to_dict()["personal_data"]


def test_what_others_ask_for_at_once_changes_no_score(client: openai.OpenAI) -> None:
    alone = [client.moderations.create(input=text).results[0] for text in (THREAT, HARMLESS)]
    together = client.moderations.create(input=[HARMLESS, THREAT]).results
    for one, other in zip(alone, reversed(together), strict=True):
        a, b = (each.category_scores.to_dict() for each in (one, other))
        # In bfloat16 a batch rounds otherwise than a text alone.
        assert all(abs(a[name] - b[name]) < 1e-2 for name in a)


def test_a_text_is_read_as_a_question_is(client: openai.OpenAI) -> None:
    """What nobody sees parts no words here either."""
    (plain, spoilt) = client.moderations.create(input=[CARD, CARD.replace(" 4", " 4\0")]).results
    assert spoilt.categories.personal_data
    assert spoilt.category_scores.to_dict() == plain.category_scores.to_dict()


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\ud800", "\x00", "x" * 50_000])
def test_odd_texts_have_scores_too(caller: Caller, text: str) -> None:
    response = caller.post("/moderations", {"input": text})
    assert response.status_code == 200, response.text
    assert not response.json()["results"][0]["categories"]["secrets"]


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "input"),
        ({"input": None}, 400, "input"),
        ({"input": 5}, 400, "input"),
        ({"input": []}, 400, "input"),
        ({"input": [5]}, 400, "input"),
        ({"input": ["x"] * (MAX_INPUTS + 1)}, 400, "input"),
        ({"input": "x" * (MAX_CHARS + 1)}, 400, "input"),
        ({"input": "x", "model": "gpt-4o"}, 404, "model"),
        ({"input": "x", "nonsense": 1}, 400, "nonsense"),
        ({"input": [{"type": "image_url", "image_url": {"url": "data:x"}}]}, 400, "input"),
    ],
)
def test_what_is_wrong_is_named(caller: Caller, body: Any, status: int, param: str) -> None:
    response = caller.post("/moderations", body)
    assert response.status_code == status, response.text
    assert response.json()["error"]["param"].split(".")[0] == param


def test_it_needs_a_key_with_the_scope(site: Site) -> None:
    with site.visitor() as visitor:
        assert visitor.post("/v1/moderations", json={"input": "x"}).status_code == 401
    site.sign_up("unmoderated").close()
    key = site.create_api_key(email_of("unmoderated"), "chat")
    assert Caller(site, key).post("/moderations", {"input": "x"}).status_code == 403
