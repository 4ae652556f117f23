"""One line of configuration: what it means, and what is wrong with it."""

import pytest

from inference import is_upstream, parse_upstream

KEYS = {"SOME_KEY": "sk-secret"}


def test_a_line_says_all() -> None:
    line = (
        "team/large=https://a.example:8443/v1/|https://b.example/v1"
        "?key=SOME_KEY&context=32768&continue=vllm&tools=off&timeout=30#org/large-model"
    )
    spec = parse_upstream(line, KEYS.get)
    assert spec.name == "team/large"
    assert spec.protocol == "openai"
    assert spec.model == "org/large-model"
    assert spec.urls == ("https://a.example:8443/v1", "https://b.example/v1")
    assert spec.api_key == "sk-secret"
    assert spec.context_tokens == 32768
    assert spec.continues == "vllm"
    assert not spec.has_tools
    assert spec.timeout_s == 30
    assert spec.hosts == "a.example:8443, b.example"


def test_a_short_line_is_enough() -> None:
    spec = parse_upstream("llama=http://localhost:11434/v1", KEYS.get)
    assert (spec.model, spec.urls) == ("llama", ("http://localhost:11434/v1",))
    assert (spec.api_key, spec.context_tokens, spec.continues) == ("", None, "")
    claude = parse_upstream("c=anthropic+https://api.example?key=SOME_KEY#claude", KEYS.get)
    assert (claude.protocol, claude.urls) == ("anthropic", ("https://api.example",))


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("a=http://x", True),
        ("a=HTTPS://x", True),
        ("a=anthropic+https://x", True),
        ("org/model", False),
        ("a=/models/http", False),
        ("~/models/a", False),
    ],
)
def test_servers_are_told_from_directories(line: str, is_one: bool) -> None:
    assert is_upstream(line) is is_one


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("a=http://x?speed=9", "speed"),
        ("a=http://x?context=many", "context"),
        ("a=http://x?context=0", "context"),
        ("a=http://x?continue=maybe", "continue"),
        ("a=http://x?timeout=0", "timeout"),
        ("a=http://x?key=EMPTY", "EMPTY"),
        ("a=http://x?key=sk-live-1", "name of a variable"),
        ("a=http://x?key=K|http://y", "last address"),
        ("a=http://x?tools=false", "tools"),
        ("a=http://x|anthropic+http://y", "protocols"),
        ("a=http://", "address"),
        ("a=http://x:99999/", "address"),
        ("a=http://user:hunter2@x/", "keys"),
        ("a=http://x?kind=embedding", "kind is"),
        ("a=anthropic+http://x?kind=speech", "chats only"),
        ("a=http://x?kind=transcription&tools=off", "tools is an option of chat"),
        ("a=http://x?voice=nova", "voice is an option of speech"),
        ("a=http://x?kind=speech&voice=", "voice"),
        ("a=http://x?kind=image&images=on", "images is an option of chat"),
        ("a=http://x?kind=image&voice=nova", "voice is an option of speech"),
        ("a=anthropic+http://x?kind=image", "chats only"),
    ],
)
def test_nonsense_is_named(line: str, word: str) -> None:
    with pytest.raises(ValueError, match=word) as caught:
        parse_upstream(line, KEYS.get)
    assert "hunter2" not in str(caught.value)
    assert "sk-live-1" not in str(caught.value)


def test_a_key_is_in_no_repr() -> None:
    assert "sk-secret" not in repr(parse_upstream("a=http://x?key=SOME_KEY", KEYS.get))


def test_what_a_model_is_made_for_is_said() -> None:
    heard = parse_upstream("w=http://x/v1?kind=transcription#whisper-1", KEYS.get)
    assert (heard.kind, heard.model) == ("transcription", "whisper-1")
    spoken = parse_upstream("v=http://x/v1?kind=speech&voice=nova", KEYS.get)
    assert (spoken.kind, spoken.voice) == ("speech", "nova")
    drawn = parse_upstream("p=http://x/v1?kind=image#gpt-image-1", KEYS.get)
    assert (drawn.kind, drawn.timeout_s) == ("image", 300)
    assert parse_upstream("p=http://x/v1?kind=image&timeout=9", KEYS.get).timeout_s == 9
    chat = parse_upstream("c=http://x/v1", KEYS.get)
    assert (chat.kind, chat.timeout_s) == ("chat", 120)
