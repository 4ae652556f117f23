"""LoRA adapters on a site: models like any other in lists, rights, the API and chats."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import openai
import pytest

from tests.chat.conftest import chat_environment
from tests.chat.reader import Reader
from tests.chat.test_limits import Caller, a_key, a_tier, place
from tests.inference.tiny_adapters import make_adapter
from tests.sites import Site, SiteMaker


@pytest.fixture(scope="module")
def site(
    make_site: SiteMaker, small_models: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("adapters")
    models = dict(entry.split("=", 1) for entry in small_models.split(","))
    make_adapter(folder / "pirate", Path(models["short"]))
    wrong = make_adapter(folder / "wrong", Path(models["short"]), targets=("q_proj",))
    (wrong / "adapter_model.safetensors").write_bytes(b"")
    adapters = ",".join(f"{name}=short+{folder / name}" for name in ("pirate", "wrong"))
    environment = chat_environment(small_models) | {"VITRINE_DEFAULT_MODEL": "short"}
    with make_site(**environment, VITRINE_ADAPTERS=adapters) as site:
        site.set_up().close()
        yield site


def said(client: openai.OpenAI, model: str) -> str:
    """A greedy answer; the two models have weights so wide that it tells them apart."""
    completion = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "Hello"}],
        max_tokens=20,
        temperature=0,
        extra_body={"ignore_eos": True},
    )
    assert completion.model == model
    return completion.choices[0].message.content or ""


def test_an_adapter_answers_under_its_own_name(site: Site) -> None:
    key = a_key(site)
    with openai.OpenAI(base_url=f"{site.url}/v1", api_key=key, max_retries=0) as client:
        listed = {model.id: model.model_dump() for model in client.models.list()}
        assert listed["pirate"]["parent"] == "short"
        assert listed["short"]["parent"] is None
        assert client.models.retrieve("pirate").id == "pirate"
        answers = [said(client, model) for model in ("pirate", "short", "pirate")]
        assert answers[0] == answers[2] != answers[1]
        with pytest.raises(openai.InternalServerError, match="wrong is not served") as caught:
            said(client, "wrong")
        assert caught.value.code == "model_refused"
        assert said(client, "pirate") == answers[0]


def test_a_tier_without_an_adapter_has_its_base_alone(site: Site) -> None:
    key = a_key(site, model_names=["short"])
    with closing(Caller(site, key=key)) as caller:
        refused, unknown = caller.ask(model="pirate"), caller.ask(model="unheard-of")
        assert refused.status_code == unknown.status_code == 404
        assert refused.text.replace("pirate", "unheard-of") == unknown.text
        assert caller.ask(model="short").status_code == 200
        listed = caller.client.get(f"{site.url}/v1/models").json()["data"]
        assert [model["id"] for model in listed] == ["short"]


def test_a_tier_with_the_adapter_alone_has_no_base(site: Site) -> None:
    key = a_key(site, model_names=["pir*"])
    with closing(Caller(site, key=key)) as caller:
        assert caller.ask(model="short").status_code == 404
        assert caller.ask(model="pirate").status_code == 200


def test_people_choose_an_adapter_for_a_chat(site: Site) -> None:
    reader = Reader.signed_up(site, "sailor")
    place(site, reader.email, a_tier(site))
    with closing(reader.client), reader:
        models = {model["name"]: model for model in reader.hear_until(type="hello")["models"]}
        assert models["pirate"]["title"] == "pirate"
        assert models["pirate"]["kind"] == "chat"
        accepted = reader.send("Hello", model="pirate")
        reader.hear_end(accepted["run"])
        assert accepted["answer"]["model"] == "pirate"
