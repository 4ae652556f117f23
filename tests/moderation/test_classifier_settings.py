"""VITRINE_MODERATION: what each line means, and which sentence a wrong one gets."""

from collections.abc import Sequence

import pytest
from django.core.exceptions import ImproperlyConfigured

from moderation.classifiers.spec import (
    BuiltIn,
    GuardModel,
    LabelModel,
    ModerationServer,
    parse_classifiers,
)
from webapp.moderation_settings import classifier_specs

KEY = "sk-very-secret"


def _parsed(*entries: str, **secrets: str) -> Sequence[object]:
    return parse_classifiers(entries, secrets.get)


def test_each_kind_is_read() -> None:
    entries = (
        "builtin",
        "classifier:unitary/toxic-bert",
        "classifier:org/odd?LABEL_1=hate+illicit/violent&LABEL_0=",
        "guard:meta-llama/Llama-Guard-3-1B",
        "guard:org/mine?family=shieldgemma",
        "server:https://mod.example.org/v1/?timeout=3#omni-moderation-latest",
    )
    assert _parsed(*entries) == (
        BuiltIn(),
        LabelModel("unitary/toxic-bert"),
        LabelModel("org/odd", {"LABEL_1": ("hate", "illicit/violent"), "LABEL_0": ()}),
        GuardModel("meta-llama/Llama-Guard-3-1B"),
        GuardModel("org/mine", "shieldgemma"),
        ModerationServer("https://mod.example.org/v1", "omni-moderation-latest", "", 3.0),
    )


@pytest.mark.parametrize("entry", ["off", "OFF"])
def test_off_is_nothing(entry: str) -> None:
    assert _parsed(entry) == ()


def test_a_server_gets_the_common_key_or_its_own() -> None:
    secrets = {"VITRINE_MODERATION_KEY": "sk-1", "OTHER": "sk-2"}
    one, other = _parsed("server:https://a/v1", "server:https://b/v1?key=OTHER", **secrets)
    assert isinstance(one, ModerationServer)
    assert isinstance(other, ModerationServer)
    assert (one.api_key, other.api_key) == ("sk-1", "sk-2")
    assert "sk-" not in repr((one, other))


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (["nonsense"], "'nonsense' is neither builtin nor"),
        (["off", "builtin"], "'off' stands alone"),
        (["classifier:"], "neither builtin nor"),
        (["classifier:?a=hate"], "names no model"),
        (["classifier:a/b?LABEL_1=rudeness"], "there is no category 'rudeness'"),
        (["classifier:a/b?LABEL_1"], "not of the form NAME=VALUE"),
        (["guard:a/b?kind=x"], "a/b: there is no option 'kind'; there are family"),
        (["guard:a/b?family=nobody"], "one of llamaguard, shieldgemma, qwen3guard"),
        (["server:mod.example.org"], "begins with server:http"),
        (["server:ftp://host/v1"], "begins with server:http"),
        (["server:https://host:99999/v1"], "begins with server:http"),
        (["server:https://me:pw@host/v1"], "keys do not go into the address"),
        (["server:https://host/v1?timeout=0"], "timeout is 1 to 600 seconds, not '0'"),
        (["server:https://host/v1?timeout=soon"], "not 'soon'"),
        (["server:https://host/v1?key=NOBODY"], "its key is to be in NOBODY, which is empty"),
        (["server:https://host/v1?key=BROKEN"], "characters that no key has"),
        (
            ["server:https://a/v1", "server:https://b/v1"],
            "two servers would get VITRINE_MODERATION_KEY",
        ),
        (["builtin", "builtin"], "builtin is there twice"),
        (["guard:a/b", "classifier:a/b"], "a/b is there twice"),
    ],
)
def test_a_wrong_line_is_told_without_its_secrets(entries: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says) as raised:
        _parsed(*entries, VITRINE_MODERATION_KEY=KEY, BROKEN=f"{KEY}\n")
    assert KEY not in str(raised.value)
    assert "pw" not in str(raised.value)


def test_the_sentence_names_the_variable() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^VITRINE_MODERATION: 'x' is neither .*\.$"):
        classifier_specs(["x"])


def test_the_key_may_lie_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("secrets") / "key"
    file.write_text(f"{KEY}\n")
    monkeypatch.setenv("VITRINE_MODERATION_KEY_FILE", str(file))
    (server,) = classifier_specs(["server:https://host/v1"])
    assert isinstance(server, ModerationServer)
    assert server.api_key == KEY
