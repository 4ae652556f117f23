"""`manage.py serve` as people meet it: one start, one end, and what breaks in between."""

import contextlib
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator

import httpx2
import psutil
import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.sites import (
    ADMIN_EMAIL,
    PASSWORD,
    Site,
    SiteMaker,
    post_form,
    running,
    still_alive,
    wait_until,
)
from tests.webapp.test_mail import Postbox
from webapp.serving import database


@pytest.fixture
def site(make_site: SiteMaker) -> Iterator[Site]:
    """A site of one's own, to be ended."""
    with running(make_site(DRAIN_TIMEOUT_S="2")) as own:
        yield own


@pytest.fixture(scope="module")
def lasting_site(make_site: SiteMaker) -> Iterator[Site]:
    """A site that is broken again and again, and goes on."""
    with running(make_site()) as shared:
        yield shared


def answers(site: Site) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        return site.visitor().get("/readyz").status_code == 200
    return False


# --- the first start ---------------------------------------------------------------------------


def test_from_the_first_start_to_people_who_chat(make_site: SiteMaker) -> None:
    with running(make_site()) as site:
        assert f"Vitrine is ready at {site.url}" in site.lines
        assert site.setup_url
        visitor = site.visitor()
        assert visitor.get("/").headers["Location"] == "/accounts/login/?next=/"
        assert "not set up yet" in visitor.get("/accounts/signup/").text
        link = site.setup_url.removeprefix(site.url)
        assert site.set_up().get("/admin/").status_code == 200
        assert visitor.get(link).status_code == 404
        dora = site.sign_up("Dora")
        assert dora.get("/accounts/password/change/").status_code == 200
        assert dora.get("/admin/", follow_redirects=True).status_code == 403
        made = site.manage("createapikey", "dora@example.org", "--name", "notebook")
        headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert visitor.get("/v1/nothing", headers=headers).status_code == 404
        assert visitor.get("/v1/nothing").status_code in (401, 404)
    assert site.process.returncode == 0
    # The next start knows the administrator.
    with running(Site(site.data_dir)) as again:
        assert again.setup_url is None
        again.sign_in(ADMIN_EMAIL)


def test_the_set_up_link_leads_to_where_others_find_the_site(make_site: SiteMaker) -> None:
    """And a probe that knows the address alone is let in."""
    with running(make_site(HOST="0.0.0.0", ALLOWED_HOSTS="chat.example.org")) as site:
        link = f"http://chat.example.org:{site.port}/setup/"
        assert site.setup_url
        assert site.setup_url.startswith(link)
        assert f"Vitrine is ready at http://localhost:{site.port}" in site.lines
        path = site.setup_url.removeprefix(f"http://chat.example.org:{site.port}")
        visitor = site.visitor()
        assert visitor.get(path, headers={"Host": "chat.example.org"}).status_code == 200
        assert visitor.get("/healthz", headers={"Host": "10.1.2.3"}).status_code == 200
        assert visitor.get("/accounts/login/").status_code == 200, "by the loopback"
        refused = visitor.get("/accounts/login/", headers={"Host": "10.1.2.3"})
        assert refused.status_code == 400


def test_a_machine_that_nobody_named_is_not_named_by_the_set_up_link(make_site: SiteMaker) -> None:
    """In a container its own name is a number that nobody can open."""
    with running(make_site(HOST="0.0.0.0")) as site:
        assert site.setup_url
        assert site.setup_url.startswith(f"http://localhost:{site.port}/setup/")


def test_a_letter_that_waits_to_be_tried_again_is_sent_at_the_end(make_site: SiteMaker) -> None:
    with Postbox(num_busy=1) as postbox:
        threading.Thread(target=postbox.serve_forever, daemon=True).start()
        host, port = postbox.server_address
        with running(make_site(SMTP_HOST=host, SMTP_PORT=str(port), SMTP_TLS="false")) as site:
            site.set_up()
            post_form(site.visitor(), "/accounts/password/reset/", {"email": ADMIN_EMAIL})
            wait_until(lambda: postbox.num_busy <= 0, what="the first try")
            assert not postbox.letters
        assert site.process.returncode == 0
        assert ADMIN_EMAIL in postbox.letters[0]
        postbox.shutdown()


def test_commands_work_while_nothing_is_served(make_site: SiteMaker) -> None:
    site = make_site.empty()
    made = site.manage(
        "createsuperuser",
        "--noinput",
        DJANGO_SUPERUSER_EMAIL=ADMIN_EMAIL,
        DJANGO_SUPERUSER_PASSWORD=PASSWORD,
    )
    assert made.returncode == 0, made.stderr
    assert site.manage("createapikey", ADMIN_EMAIL).stdout.startswith("vt_")
    with running(site):
        assert site.setup_url is None
        site.sign_in(ADMIN_EMAIL)


# --- starts that cannot be ---------------------------------------------------------------------


def test_a_second_start_says_who_is_there(lasting_site: Site) -> None:
    second = Site(lasting_site.data_dir).start(wait=False)
    assert second.wait_end() == 1
    assert f"pid {lasting_site.process.pid}, at {lasting_site.url}." in second.output
    assert answers(lasting_site)


def test_two_starts_at_the_same_moment_make_one_site(make_site: SiteMaker) -> None:
    one = make_site()
    both = [one.start(wait=False), Site(one.data_dir).start(wait=False)]
    try:
        wait_until(lambda: any("is ready" in s.output for s in both), what="one ready")
        wait_until(lambda: any(s.process.poll() is not None for s in both), what="one end")
        loser = next(site for site in both if site.process.poll() is not None)
        assert loser.wait_end() == 1
        assert "already runs" in loser.output
    finally:
        for site in both:
            site.stop()


def test_a_taken_port_is_said_at_once(make_site: SiteMaker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        site = make_site()
        site.port = port
        site.start(wait=False)
        assert site.wait_end() == 1
    assert f"Port {port} on 127.0.0.1 is already in use" in site.output
    assert "Traceback" not in site.output
    assert not (site.data_dir / "sockets").exists()


def test_a_variable_that_nothing_reads_is_named(make_site: SiteMaker) -> None:
    site = make_site.empty(VITRINE_MODLES="small=/nowhere", VITRINE_OF_TOMORROW="1")
    with socket.create_server(("127.0.0.1", site.port)):  # so that it ends there
        site.start(wait=False)
        assert site.wait_end() == 1
    assert "VITRINE_MODLES is set, and nothing reads it. Is VITRINE_MODELS meant?" in site.output
    assert "VITRINE_OF_TOMORROW is set, and nothing reads it.\n" in site.output
    assert site.output.count("nothing reads it") == 2


def test_no_database_is_made_beside_the_files_of_another(make_site: SiteMaker) -> None:
    """As by a start that has lost its DATABASE_URL."""
    site = make_site.empty()
    (site.data_dir / "documents").mkdir(parents=True)
    (site.data_dir / "documents/1").write_text("of the site that is elsewhere")
    site.start(wait=False)
    assert site.wait_end() == 1
    assert "holds files of a site (documents) and not its database. Set DATABASE_URL" in site.output
    assert "DATABASE_URL" in site.manage("invite").stderr
    assert not (site.data_dir / "postgres").exists()


@pytest.mark.parametrize("name", ["secret_key", "serve.lock", "logs"])
def test_what_this_user_may_not_open_is_said_in_one_sentence(
    make_site: SiteMaker, name: str
) -> None:
    """Nothing is forbidden to root, but a folder is no file, and a file no folder."""
    site = make_site.empty()
    if name == "logs":
        site.data_dir.mkdir()
        (site.data_dir / name).write_text("")
    else:
        (site.data_dir / name).mkdir(parents=True)
    site.start(wait=False)
    assert site.wait_end() == 1
    assert str(site.data_dir / name) in site.output
    assert "Traceback" not in site.output


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DATABASE_URL": "postgresql://u:secret-1@127.0.0.1:1/db"}, "DATABASE_URL"),
        ({"REDIS_URL": "redis://127.0.0.1:1"}, "REDIS_URL"),
        ({"DRAIN_TIMEOUT_S": "soon"}, "DRAIN_TIMEOUT_S"),
        ({"DATA_DIR": "/dev/null/var"}, "DATA_DIR: /dev/null/var cannot be made"),
        ({"ALLOWED_HOSTS": "https://chat.example"}, "ALLOWED_HOSTS: 'https://chat.example'"),
        ({"ALLOWED_HOSTS": ","}, "ALLOWED_HOSTS names nothing"),
        ({"REDIS_URL": "localhost:6379"}, "REDIS_URL is not understood"),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL must be one of DEBUG"),
        ({"VITRINE_CACHE_SIMILARITY": "5"}, "VITRINE_CACHE_SIMILARITY must be at least 0.5"),
        ({"VITRINE_CURRENCY": "Euro"}, "VITRINE_CURRENCY must be"),
        ({"SMTP_FROM": "foo"}, "SMTP_FROM must be an e-mail address"),
        ({"VITRINE_MODERATION": "nonsense"}, "VITRINE_MODERATION: 'nonsense' is neither"),
        (
            {"VITRINE_MODERATION": "guard:nobody/here"},
            "VITRINE_MODERATION: The model 'nobody/here'",
        ),
    ],
)
def test_wrong_settings_are_named(
    make_site: SiteMaker, environment: dict[str, str], words: str
) -> None:
    site = make_site(**environment).start(wait=False)
    assert site.wait_end() == 1
    assert words in site.output
    assert "secret-1" not in site.output


def test_a_role_that_row_level_security_does_not_bind_is_refused(
    servers: None, make_site: SiteMaker
) -> None:
    from tests.conftest import DATA_DIR

    url = f"postgresql://postgres@/vitrine?host={DATA_DIR}/sockets"
    site = make_site(DATABASE_URL=url).start(wait=False)
    assert site.wait_end() == 1
    assert "bypasses row-level security" in site.output


@contextlib.contextmanager
def plain_database(name: str) -> Iterator[str]:
    """A database of the role's own in the tests' server, without any extension; its URL."""
    from tests.conftest import DATA_DIR

    as_superuser = f"postgresql://postgres@/postgres?host={DATA_DIR}/sockets"
    with psycopg.connect(as_superuser, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} OWNER vitrine TEMPLATE template0")
        try:
            yield f"postgresql://vitrine@/{name}?host={DATA_DIR}/sockets"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_database_without_vectors_says_who_can_give_them(
    servers: None, make_site: SiteMaker
) -> None:
    with plain_database("plain") as url:
        site = make_site(DATABASE_URL=url).start(wait=False)
        assert site.wait_end() == 1
        assert "lacks the extension vector" in site.output
        assert "CREATE EXTENSION vector;" in site.output
        assert "Traceback" not in site.output


def test_a_server_that_is_too_old_is_refused(
    servers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.conftest import DATA_DIR
    from webapp.servers.postgres import Postgres

    with psycopg.connect(Postgres(DATA_DIR).conninfo()) as connection:
        assert database.server_problem(connection) is None
        version = connection.info.server_version // 10_000
        monkeypatch.setattr(database, "OLDEST_SERVER", version + 1)
        told = str(database.server_problem(connection))
    assert told == f"DATABASE_URL names a Postgres {version}; {version + 1} or newer is needed."


def test_vectors_are_made_where_the_role_may_and_have_to_be_young_enough(
    servers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with plain_database("plainer") as url:
        with psycopg.connect(url.replace("vitrine@", "postgres@"), autocommit=True) as superuser:
            assert database.vector_problem(superuser) is None
        with psycopg.connect(url, autocommit=True) as own:
            assert own.execute("SELECT '[1]'::halfvec(1)::text").fetchone() == ("[1]",)
            assert database.vector_problem(own) is None
            monkeypatch.setattr(database, "OLDEST_VECTOR", (99, 1))
            assert "99.1 or newer" in str(database.vector_problem(own))


def test_a_pooler_that_shares_sessions_is_refused(servers: None) -> None:
    """Two visitors whom it serves by one server process."""
    with (
        plain_database("pooled") as url,
        psycopg.connect(url, autocommit=True) as one,
        psycopg.connect(url, autocommit=True) as other,
    ):
        assert database.shared_problem([one, other]) is None
        assert "pool by session" in str(database.shared_problem([one, one]))


# --- the end -----------------------------------------------------------------------------------


def test_sigterm_ends_everything_in_order_and_tells_sockets_to_come_back(site: Site) -> None:
    headers = {"Cookie": f"vitrine_session={site.set_up().cookies['vitrine_session']}"}
    url = f"ws://127.0.0.1:{site.port}/ws/chat/"
    processes = site.descendants()
    assert len(processes) > 5
    with connect(url, origin=site.url, additional_headers=headers) as browser:
        browser.recv(timeout=10)
        site.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                browser.recv(timeout=10)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    assert site.wait_end() == 0
    assert not still_alive(processes)
    assert "Traceback" not in site.output
    assert not (site.data_dir / "postgres/postmaster.pid").exists()


def test_a_second_ctrl_c_ends_it_at_once(site: Site) -> None:
    processes = site.descendants()
    worker = wait_until(lambda: _child_or_none(site, "worker"), what="a worker")
    worker.suspend()  # it will not hear SIGTERM
    site.process.send_signal(signal.SIGINT)
    wait_until(lambda: "Ending" in site.output, what="the end")
    site.process.send_signal(signal.SIGINT)
    started = time.monotonic()
    assert site.wait_end() == 0
    assert time.monotonic() - started < 6
    assert not still_alive(processes)


@contextlib.contextmanager
def inheriting(handler: signal.Handlers) -> Iterator[None]:
    """What is started within has this for SIGHUP, however the tests themselves were started."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_during_the_start_ends_what_has_started(make_site: SiteMaker) -> None:
    with inheriting(signal.SIG_DFL):
        site = make_site().start(wait=False)
    wait_until(lambda: (site.data_dir / "sockets/valkey.sock").exists(), what="valkey")
    processes = site.descendants()
    site.process.send_signal(signal.SIGHUP)  # the console was closed
    assert site.wait_end() == 0, site.output
    assert not still_alive(processes)


def test_with_nohup_it_outlives_the_console(make_site: SiteMaker) -> None:
    with inheriting(signal.SIG_IGN):  # what nohup does
        site = make_site().start()
    try:
        site.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert "Ending" not in site.output
        assert answers(site)
    finally:
        assert site.stop() == 0


# --- what breaks -------------------------------------------------------------------------------


def test_nothing_is_left_when_the_supervisor_is_killed_and_the_next_start_works(
    site: Site,
) -> None:
    processes = site.descendants()
    site.process.kill()
    again = Site(site.data_dir, site.port).start()  # at once
    try:
        assert answers(again)
        wait_until(lambda: not still_alive(processes), what="the end of the orphans")
    finally:
        again.stop()


def test_everything_killed_at_once_is_survived(site: Site) -> None:
    site.set_up()
    site.kill()
    with running(Site(site.data_dir, site.port)) as again:
        again.sign_in(ADMIN_EMAIL)


@pytest.mark.parametrize("name", ["web", "worker", "valkey", "postgres"])
def test_what_is_killed_comes_back(lasting_site: Site, name: str) -> None:
    old = wait_until(lambda: _child_or_none(lasting_site, name), what=name)
    old.kill()

    def is_new() -> bool:
        new = _child_or_none(lasting_site, name)
        return new is not None and new.pid != old.pid

    wait_until(is_new, what=f"a new {name}")
    wait_until(lambda: answers(lasting_site), what="an answer")
    assert f"{name} ended (killed by SIGKILL)" in lasting_site.output
    assert lasting_site.set_up().get("/accounts/password/change/").status_code == 200


def test_while_the_web_process_is_replaced_visitors_wait_instead_of_being_refused(
    lasting_site: Site,
) -> None:
    lasting_site.child("web").kill()
    assert lasting_site.visitor().get("/healthz").status_code == 200


def test_what_keeps_dying_is_restarted_less_and_less_often(lasting_site: Site) -> None:
    for _ in range(3):
        victim = wait_until(lambda: _child_or_none(lasting_site, "worker"), what="a worker")
        victim.kill()
        victim.wait(10)

    def pauses() -> list[str]:
        return re.findall(r"worker ended .*again in ([0-9.]+) s", lasting_site.output)

    # The line about the last death is printed a moment after it.
    wait_until(lambda: len(pauses()) >= 2 and float(pauses()[-1]) >= 1.0, what="a longer pause")
    assert pauses() == sorted(pauses(), key=float)
    assert answers(lasting_site)


def test_what_cannot_be_started_again_now_is_started_later(lasting_site: Site) -> None:
    """As on a machine without a process, or room on its disk, to give."""
    log = lasting_site.data_dir / "logs/valkey.log"
    log.rename(log.with_suffix(".away"))
    log.mkdir()
    lasting_site.child("valkey").kill()
    wait_until(lambda: "valkey did not start" in lasting_site.output, what="a failed start")
    assert lasting_site.process.poll() is None
    log.rmdir()
    wait_until(lambda: _child_or_none(lasting_site, "valkey"), what="a new valkey")
    wait_until(lambda: answers(lasting_site), what="an answer")


def _child_or_none(site: Site, name: str) -> psutil.Process | None:
    try:
        return site.child(name)
    except LookupError:
        return None


# --- what a process holds ----------------------------------------------------------------------


def _child_or_none(site: Site, name: str) -> psutil.Process | None:
    """The child, unless an earlier test has killed it and it is on its way back."""
    with contextlib.suppress(LookupError):
        return site.child(name)
    return None


def test_no_process_of_the_shell_has_torch(lasting_site: Site) -> None:
    lasting_site.set_up().get("/")
    for name in ("web", "worker"):
        process = wait_until(lambda name=name: _child_or_none(lasting_site, name), what=name)
        libraries = {mapping.path for mapping in process.memory_maps()}
        assert not [path for path in libraries if "/torch/" in path]


def test_files_with_secrets_are_private(lasting_site: Site) -> None:
    for name in ("secret_key", "postgres", "sockets", "logs", "serve.lock"):
        assert (lasting_site.data_dir / name).stat().st_mode & 0o077 == 0, name
