"""Reading the environment: right values, defaults, and errors that name the variable."""

import os
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from kombu import Connection
from redis import ConnectionPool, SSLConnection
from redis.asyncio import SSLConnection as AsyncSSLConnection

from retrieval.db import NUM_THREADS
from webapp.databases import database_settings
from webapp.env import (
    env_bool,
    env_choice,
    env_email,
    env_float,
    env_folder,
    env_int,
    env_list,
    env_secret,
    env_secrets,
)
from webapp.hosts import LOOPBACK, allowed_hosts, default_allowed_hosts, trusted_networks
from webapp.model_settings import adapters, draft_models, ranks, workers
from webapp.prices import currency
from webapp.redis_settings import broker_url, redis_url
from webapp.secret_key import forget_keys, make_new_key, stored_secret_keys
from webapp.upstreams import upstream_specs


@pytest.fixture
def variable(monkeypatch: pytest.MonkeyPatch):
    """Sets NAME, or another variable."""
    return lambda value, name="NAME": monkeypatch.setenv(name, str(value))


@pytest.mark.parametrize("value", ["1", "true", "Yes", " on "])
def test_what_is_true(variable, value: str) -> None:
    variable(value)
    assert env_bool("NAME", False) is True


@pytest.mark.parametrize("value", ["0", "false", "No", "OFF"])
def test_what_is_false(variable, value: str) -> None:
    variable(value)
    assert env_bool("NAME", True) is False


def test_unset_and_empty_mean_the_default(variable) -> None:
    for value in (None, "", "  "):
        if value is not None:
            variable(value)
        assert env_bool("NAME", True) is True
        assert env_int("NAME", 7) == 7
        assert env_float("NAME", None) is None
        assert env_list("NAME", ["a"]) == ["a"]
        assert env_choice("NAME", ("a", "b"), "b") == "b"
        assert env_secret("NAME") is None


def test_lists_are_split_at_commas(variable) -> None:
    variable(" a, b ,,c ")
    assert env_list("NAME") == ["a", "b", "c"]
    variable(" , ")
    with pytest.raises(ImproperlyConfigured, match="NAME names nothing"):
        env_list("NAME")


def test_nonsense_names_the_variable(variable) -> None:
    variable("perhaps")
    for read in (
        lambda: env_bool("NAME", True),
        lambda: env_int("NAME", 1),
        lambda: env_float("NAME", 1.0),
        lambda: env_choice("NAME", ("a", "b"), "a"),
    ):
        with pytest.raises(ImproperlyConfigured, match=r"NAME must be .*perhaps"):
            read()


@pytest.mark.parametrize(("value", "words"), [("0", "at least 1"), ("70000", "at most 65535")])
def test_numbers_have_limits(variable, value: str, words: str) -> None:
    variable(value)
    with pytest.raises(ImproperlyConfigured, match=words):
        env_int("NAME", 1, minimum=1, maximum=65535)


def test_a_number_with_a_point_may_have_a_maximum(variable) -> None:
    variable("5")
    with pytest.raises(ImproperlyConfigured, match=r"NAME must be .*at most 1, not 5"):
        env_float("NAME", 0.9, minimum=0.5, maximum=1)


def test_a_choice_is_known_however_it_is_capitalised(variable) -> None:
    variable("debug")
    assert env_choice("NAME", ("DEBUG", "INFO"), "INFO") == "DEBUG"


def test_an_address_may_have_a_name(variable) -> None:
    assert env_email("NAME", "vitrine@127.0.0.1") == "vitrine@127.0.0.1"
    for value in ("a@example.org", "Vitrine <a@example.org>", "vitrine@mailhost"):
        variable(value)
        assert env_email("NAME", "") == value
    for value in ("foo", "Vitrine <foo>", "a@", "@b", "a b@c", "a@b@c", "V <a@b>\nBcc: c@d"):
        variable(value)
        with pytest.raises(ImproperlyConfigured, match="NAME must be an e-mail address"):
            env_email("NAME", "")


def test_a_folder_is_made_and_can_be_written(
    variable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable(tmp_path / "new" / "var")
    assert env_folder("NAME", tmp_path).is_dir()
    (tmp_path / "file").touch()
    variable(tmp_path / "file")
    with pytest.raises(ImproperlyConfigured, match=r"NAME: .*cannot be made"):
        env_folder("NAME", tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # tests may run as root
    variable(tmp_path)
    with pytest.raises(ImproperlyConfigured, match=r"NAME: .*cannot be written"):
        env_folder("NAME", tmp_path)


def test_a_currency_is_a_code() -> None:
    assert currency("usd") == "USD"
    for code in ("Euro", "€", "EU"):
        with pytest.raises(ImproperlyConfigured, match="VITRINE_CURRENCY"):
            currency(code)


@pytest.mark.parametrize(
    ("value", "words"), [("0.4", "at least 0.5"), ("-1", "0.5"), ("nan", "0.5"), ("inf", "0.5")]
)
def test_so_have_numbers_with_a_point(variable, value: str, words: str) -> None:
    variable(value)
    with pytest.raises(ImproperlyConfigured, match=f"NAME must be .*{words}"):
        env_float("NAME", None, minimum=0.5)
    variable("1.5")
    assert env_float("NAME", None, minimum=0.5) == 1.5


def test_a_secret_may_come_from_a_file(variable, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    variable(file, "NAME_FILE")
    assert env_secret("NAME") == "s3cret"
    variable("other")
    with pytest.raises(ImproperlyConfigured, match="NAME and NAME_FILE") as caught:
        env_secret("NAME")
    assert "s3cret" not in str(caught.value)


def test_a_secret_file_must_be_there_and_hold_something(variable, tmp_path: Path) -> None:
    variable(tmp_path / "missing", "NAME_FILE")
    with pytest.raises(ImproperlyConfigured, match="NAME_FILE"):
        env_secret("NAME")
    (tmp_path / "empty").touch()
    variable(tmp_path / "empty", "NAME_FILE")
    with pytest.raises(ImproperlyConfigured, match="NAME_FILE"):
        env_secret("NAME")


def test_a_database_url_is_read_as_libpq_reads_it(tmp_path: Path) -> None:
    url = "postgresql://me:p%40ss@db.example:6543/chat?sslmode=verify-full"
    found = database_settings(url, tmp_path)
    assert (found["NAME"], found["USER"], found["PASSWORD"]) == ("chat", "me", "p@ss")
    assert (found["HOST"], found["PORT"]) == ("db.example", "6543")
    assert found["OPTIONS"]["sslmode"] == "verify-full"
    assert found["OPTIONS"]["pool"]["max_size"] == NUM_THREADS + 10
    assert database_settings("host=/run/pg dbname=chat", tmp_path)["HOST"] == "/run/pg"
    embedded = database_settings("", tmp_path)
    assert (embedded["NAME"], embedded["USER"]) == ("vitrine", "vitrine")


@pytest.mark.parametrize("url", ["mysql://x", "postgresql://me:s3cret@db:port/x", "host=db"])
def test_a_wrong_database_url_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL") as caught:
        database_settings(url, tmp_path)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "redis://:s3cret@:6379",
        "redis://:s3cret@host:port",
        "http://host",
        "unix://",
        "rediss://host?ssl_cert_reqs=s3cret",
    ],
)
def test_a_wrong_redis_url_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL") as caught:
        redis_url(url, tmp_path)
    assert "s3cret" not in str(caught.value)


def checks_of_certificates(url: str) -> list[Any]:
    """Of the queue, the cache and the channel layer."""
    with Connection(broker_url(url)) as queue:
        found = [queue.ssl["ssl_cert_reqs"]]
    options = ConnectionPool.from_url(url).connection_kwargs
    return [*found, SSLConnection(**options).cert_reqs, AsyncSSLConnection(**options).cert_reqs]


def test_certificates_of_redis_are_checked_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    url = redis_url("rediss://:pass@redis.example:6380/1", tmp_path)
    assert checks_of_certificates(url) == [ssl.CERT_REQUIRED] * 3
    assert checks_of_certificates(f"{url}?ssl_ca_certs=/ca.pem") == [ssl.CERT_REQUIRED] * 3
    assert checks_of_certificates(f"{url}?ssl_cert_reqs=none") == [ssl.CERT_NONE] * 3
    embedded = redis_url("", tmp_path)
    assert embedded.startswith("unix:///")
    assert broker_url(embedded) == embedded.replace("unix", "redis+socket")
    assert broker_url("redis://redis.example") == "redis://redis.example"


def test_the_allowed_hosts_are_never_all() -> None:
    assert default_allowed_hosts("127.0.0.1") == ["localhost", "127.0.0.1", "[::1]"]
    assert "chat.example" in default_allowed_hosts("chat.example")
    assert "[2001:db8::1]" in default_allowed_hosts("2001:db8::1")
    everywhere = default_allowed_hosts("0.0.0.0")
    assert "localhost" in everywhere
    assert not {"*", "0.0.0.0"} & set(everywhere)


def test_the_loopback_is_always_allowed() -> None:
    found = allowed_hosts(["chat.example", ".wiki.example", "[2001:db8::1]"], "127.0.0.1")
    assert found == ["chat.example", ".wiki.example", "[2001:db8::1]", *LOOPBACK]
    assert allowed_hosts([], "127.0.0.1") == default_allowed_hosts("127.0.0.1")


@pytest.mark.parametrize("value", ["https://chat.example", "chat.example:8000", "chat.example/"])
def test_an_allowed_host_is_a_name_alone(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"ALLOWED_HOSTS: .*is no host name"):
        allowed_hosts([value], "127.0.0.1")


def test_trusted_proxies_must_be_networks() -> None:
    assert [str(n) for n in trusted_networks(["10.0.0.0/8", "::1"])] == ["10.0.0.0/8", "::1/128"]
    with pytest.raises(ImproperlyConfigured, match="TRUSTED_PROXIES"):
        trusted_networks(["10.0.0.1/8"])


def test_processes_that_start_at_once_agree_on_the_secret_key(tmp_path: Path) -> None:
    data_dir = tmp_path / "new"
    barrier = threading.Barrier(16)
    keys = []

    def make() -> None:
        barrier.wait()
        keys.extend(stored_secret_keys(data_dir))

    threads = [threading.Thread(target=make) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 1
    assert len(keys[0]) > 50
    assert (data_dir / "secret_key").stat().st_mode & 0o777 == 0o600
    assert os.listdir(data_dir) == ["secret_key"]


def test_of_new_keys_that_are_made_at_once_none_is_lost(tmp_path: Path) -> None:
    first = stored_secret_keys(tmp_path)
    barrier = threading.Barrier(8)
    found = []

    def make() -> None:
        barrier.wait()
        make_new_key(tmp_path)
        found.append(stored_secret_keys(tmp_path)[0])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = stored_secret_keys(tmp_path)
    assert (len(set(keys)), keys[-1:]) == (9, first)
    assert set(found) < set(keys)
    assert os.listdir(tmp_path) == ["secret_key"]
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600


def test_only_keys_of_before_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "secret_key"
    file.write_text("new\n\n between \nold\nnew\n")
    assert stored_secret_keys(tmp_path) == ["new", "between", "old"]
    (tmp_path / "secret_key.new").write_text("what a kill has left, longer than what comes")
    assert forget_keys(tmp_path, ["old", "new", "elsewhere"]) == 1
    assert file.read_text() == "new\nbetween\n"
    for content in (b"\n \n", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(ImproperlyConfigured, match="secret_key"):
            make_new_key(tmp_path)
        assert file.read_bytes() == content


def test_keys_of_before(variable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable(" old,, older , ")
    assert env_secrets("NAME") == ["old", "older"]
    variable(" , ")
    with pytest.raises(ImproperlyConfigured, match="NAME"):
        env_secrets("NAME")
    file = tmp_path / "keys"
    file.write_text("\nold,with a comma\n\nolder\n")
    monkeypatch.delenv("NAME")
    assert env_secrets("NAME") == []
    monkeypatch.setenv("NAME_FILE", str(file))
    assert env_secrets("NAME") == ["old,with a comma", "older"]
    variable("old")
    with pytest.raises(ImproperlyConfigured, match="both set"):
        env_secrets("NAME")


def test_models_on_other_servers(variable) -> None:
    variable("sk-1")
    (spec,) = upstream_specs(["far=http://x.example/v1?key=NAME"])
    assert spec.api_key == "sk-1"


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        (["far=http://x.example/?key=NO_SUCH_NAME"], "NO_SUCH_NAME"),
        (["far=http://x.example", "far=http://y.example"], "twice"),
    ],
)
def test_wrong_models_on_other_servers_stop_the_start(entries: list[str], word: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"VITRINE_MODELS.*{word}"):
        upstream_specs(entries)


def test_draft_models_are_pairs() -> None:
    assert draft_models([]) == ()
    assert draft_models(["org/big=org/small", " b = s "]) == (("org/big", "org/small"), ("b", "s"))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["big"], "'big' is not"),
        (["=small"], "is not MODEL=DRAFT_MODEL"),
        (["big="], "is not MODEL=DRAFT_MODEL"),
        (["big=big"], "guess for itself"),
        (["big=small", "big=other"], "'big' has two"),
    ],
)
def test_wrong_draft_models_stop_the_start(entries: list[str], words: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"VITRINE_DRAFT_MODELS: .*{words}"):
        draft_models(entries)


def test_wrong_adapters_stop_the_start() -> None:
    assert [one.name for one in adapters(["pirate=org/big+/a", "support=org/big+/b"])] == [
        "pirate",
        "support",
    ]
    words = r"VITRINE_ADAPTERS: 'pirate=org/big' is not NAME=MODEL\+PATH\."
    with pytest.raises(ImproperlyConfigured, match=words):
        adapters(["pirate=org/big"])


def test_numbers_of_workers_are_for_a_model_or_for_all() -> None:
    assert workers([]) == ()
    assert workers(["2", "org/big = 4"]) == (("*", 2), ("org/big", 4))
    with pytest.raises(ImproperlyConfigured, match="VITRINE_WORKERS: 'org/big=none' is not"):
        workers(["org/big=none"])


def test_each_model_that_is_split_is_named() -> None:
    assert ranks(["org/big = 2"]) == (("org/big", 2),)
    with pytest.raises(
        ImproperlyConfigured, match="VITRINE_TENSOR_PARALLEL: '2' is not MODEL=NUMBER"
    ):
        ranks(["2"])
