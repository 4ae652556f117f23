"""Search: everything that its owner wrote or was answered, in any language, and nothing of others."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat import library, search
from chat.errors import BadCursor
from chat.models import Conversation, Message, Role
from chat.search_query import parse
from retrieval.characters import fold
from webapp.tenancy import as_nobody, as_system, as_user

if TYPE_CHECKING:
    from webapp.models import User

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def mine(alice: "User") -> Iterator["User"]:
    with as_user(alice.pk):
        yield alice


def chat(owner: "User", title: str = "", *texts: str, **fields: Any) -> Conversation:
    made = Conversation.objects.create(owner=owner, title=title, **fields)
    parent = None
    for number, text in enumerate(texts):
        role = Role.ASSISTANT if number % 2 else Role.USER
        parent = Message.objects.create(conversation=made, parent=parent, role=role, text=text)
    return made


def found(user: "User", text: str) -> list[str]:
    """The titles of all chats that are found, over all pages."""
    titles: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = search.search(user, parse(text, UTC), cursor)
        rows = Conversation.objects.in_bulk([hit.conversation_id for hit in page.hits])
        titles += [rows[hit.conversation_id].title for hit in page.hits]
        cursor = page.next_cursor
    return titles


@pytest.mark.parametrize(
    ("text", "queries", "others"),
    [
        ("Die Straße nach Zürich", ["strasse", "zurich", "STRASSE", "zür"], ["ürich", "zurichs"]),
        ("ein Café au lait", ["cafe", "cafe\u0301", '"café au"'], ['"cafe lait"', "afe"]),
        (
            "東京都の天気予報",
            ["東京", "京都の天気", "予報", "報", "東", "天気予"],
            ["東都", "気天"],
        ),
        ("今日はいい天気です。", ["天気", "いい天気", "です"], ["いい気"]),
        ("วันนี้อากาศดีมาก", ["อากาศ", "วันนี้", "ดีมาก"], ["อากาศไม่ดี"]),
        ("안녕하세요 세계", ["안녕", "세계", "녕하세"], ["안세"]),
        ("हिन्दी में लिखा हुआ", ["हिन्दी", "लिखा"], ["हिन्दु"]),
        ("كَتَبَ الوَلَدُ", ["كتب", "الولد"], ["كتاب"]),
        ("שָׁלוֹם עוֹלָם", ["שלום", "עולם"], ["שלומים"]),
        ("Ολοκληρωμένος ΟΔΟΣ", ["ολοκληρωμενοσ", "οδος", "οδοσ"], ["οδοι"]),
        ("Всё ещё здесь", ["все еще", "ВСЁ"], ["всему"]),
        ("ﬁnancial ｆｕｌｌ １２３", ["financial", "full", "123"], ["1234"]),
        ("İstanbul'da", ["istanbul", "İstanbul"], ["stanbul"]),
        ("Xin chào Việt Nam", ["viet", "việt nam"], ["vietnam"]),
        ("a@example.org wrote foo_bar-baz", ["a@example.org", "foo_bar", "bar", "baz"], ["oo_bar"]),
        ("Good job 🎉 and 👩‍🚀", ["🎉", "👩‍🚀"], ["🎃"]),
        ("don't stop, can't stop", ["don't", '"can\'t stop"'], ["\"don't can't\""]),
    ],
)
def test_any_language(mine: "User", text: str, queries: list[str], others: list[str]) -> None:
    chat(mine, "it", "first", text)
    for query in queries:
        assert found(mine, query) == ["it"], query
    for query in others:
        assert found(mine, query) == [], query


WORDS = st.text("abé东京ßก ", min_size=1, max_size=24)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS, st.integers(0, 20), st.integers(1, 12))
def test_a_phrase_of_a_text_finds_it(db: None, alice: "User", text: str, at: int, n: int) -> None:
    """Whatever stands in a text between two places where words may begin and end."""
    words = text.split()[at : at + n]
    with as_user(alice.pk):
        made = chat(alice, "it", "zzz", text)
        if fold("".join(words)):
            assert found(alice, f'"{" ".join(words)}"') == ["it"]
        made.delete()


def test_all_words_are_wanted_and_unwanted_ones_are_not(mine: "User") -> None:
    chat(mine, "both", "the red garden")
    chat(mine, "one", "the red house")
    assert sorted(found(mine, "red")) == ["both", "one"]
    assert found(mine, "red garden") == ["both"]
    assert found(mine, "red -garden") == ["one"]
    assert found(mine, '"garden red"') == []
    assert sorted(found(mine, "-nothing")) == ["both", "both", "one", "one"][::2]
    assert found(mine, "???") == []
    assert found(mine, "") == []


def test_titles_come_first_and_many_matches_before_one(mine: "User") -> None:
    chat(mine, "rare", "a word in many other words, " * 20 + "tomato")
    chat(mine, "much", "tomato and tomato, tomato tomato")
    chat(mine, "Tomato plan", "nothing of it")
    assert found(mine, "tomato") == ["Tomato plan", "much", "rare"]


def test_a_chat_is_listed_once_at_its_best_message(mine: "User") -> None:
    made = chat(mine, "it", "tomato", "no", "tomato tomato tomato", "a tomato beside other things")
    page = search.search(mine, parse("tomato", UTC))
    [hit] = page.hits
    best = Message.objects.get(conversation=made, text="tomato tomato tomato")
    assert (hit.message_id, hit.num_matches, hit.text) == (best.pk, 3, best.text)


def test_filters(mine: "User") -> None:
    folder = library.create_folder(mine, "My trips")
    now = timezone.now()
    chat(mine, "tagged", "word", tags=["work", "two words"])
    chat(mine, "in folder", "word", folder=folder)
    chat(mine, "pinned", "word", pinned_at=now)
    chat(mine, "archived", "word", archived_at=now)
    old = chat(mine, "old", "word")
    Message.objects.filter(conversation=old).delete()
    Message.objects.create(conversation=old, role=Role.USER, text="word", created_at=LONG_AGO)
    Message.objects.filter(conversation=old).update(created_at=LONG_AGO, text="word")
    Conversation.objects.filter(pk=old.pk).update(updated_at=LONG_AGO)
    for text, titles in {
        "tag:work": ["tagged"],
        'tag:"TWO words" tag:work': ["tagged"],
        "tag:work tag:other": [],
        'folder:"my Trips"': ["in folder"],
        "pinned:yes": ["pinned"],
        "archived:": ["archived"],
        "before:2021": ["old"],
        "after:2021 pinned:no archived:no tag:work": ["tagged"],
    }.items():
        assert found(mine, text) == titles, text
        assert found(mine, f"{text} word") == titles, text


def test_pages_hold_every_chat_once_however_many_match(
    mine: "User", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WINDOW", 7)
    monkeypatch.setattr(search, "PAGE_SIZE", 3)
    for number in range(25):
        chat(mine, f"c{number}", *["word"] * (1 + number % 4))
    titles = found(mine, "word")
    assert sorted(titles) == sorted(f"c{number}" for number in range(25))
    assert sorted(found(mine, "archived:no")) == sorted(titles)


def test_what_is_found_is_what_the_text_is_now(mine: "User") -> None:
    made = chat(mine, "first title", "before")
    Message.objects.filter(conversation=made).update(text="after")
    library.change(mine, made.pk, {"title": "second"}, None)
    assert found(mine, "before") == found(mine, "first") == []
    assert found(mine, "after") == found(mine, "second") == ["second"]
    Message.objects.filter(conversation=made).delete()
    assert found(mine, "after") == []
    made.delete()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM chat_searchentry")
        assert cursor.fetchone() == (0,)


def test_the_end_of_the_longest_message_is_found(mine: "User") -> None:
    words = " ".join(f"w{n}" for n in range(27_000))
    for text in (words + " needle", "漢字仮名" * 49_000 + "終点"):
        chat(mine, "long", text)
    for query in ("needle", "終点", '"w26999 needle"', '"w2500 w2501"', '"w2666 w2667 w2668"'):
        assert found(mine, query) == ["long"], query
    [hit] = search.search(mine, parse("終点", UTC)).hits
    assert "終点" in hit.text


@pytest.mark.parametrize("cursor", ["x", "~~~~~", "a~1~~~", "~~1~2026-01-01~x", "~~x~~"])
def test_a_made_up_cursor_is_refused(mine: "User", cursor: str) -> None:
    with pytest.raises(BadCursor):
        search.search(mine, parse("word", UTC), cursor)


def test_charlie_finds_nothing_of_alice(alice: "User", charlie: "User") -> None:
    with as_user(alice.pk):
        chat(alice, "canary title", "canary text", tags=["canary"])
    for query in ("canary", "-nothing", "tag:canary", "archived:no"):
        with as_user(charlie.pk):
            assert found(charlie, query) == []
            assert found(alice, query) == []  # a mistaken owner does not help either
    with as_user(alice.pk):
        assert found(alice, "canary") == ["canary title"]


def test_no_query_sees_another_users_entries(alice: "User", charlie: "User") -> None:
    with as_user(alice.pk):
        made = chat(alice, "canary title", "canary text")

    def seen(looked_for: str = "") -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('vitrine.search', %s, true)", [looked_for])
            cursor.execute("SELECT count(*) FROM chat_searchentry")
            (count,) = cursor.fetchone()
            cursor.execute("SELECT set_config('vitrine.search', '', true)")
        return int(count)

    anything = ("", "canary", f"':user:{alice.pk}'", "!nothing", "canary | ':system'")
    for looked_for in anything:
        with as_user(charlie.pk):
            assert seen(looked_for) == 0
        with as_nobody():
            assert seen(looked_for) == 0
    with as_user(alice.pk):
        assert seen() == 2
    with as_system():
        assert seen("text") == 1
    with as_user(charlie.pk), connection.cursor() as cursor:
        cursor.execute("DELETE FROM chat_searchentry WHERE conversation_id = %s", [made.pk])
        assert cursor.rowcount == 0


def test_a_search_leaves_nothing_behind_on_its_connection(mine: "User") -> None:
    made = chat(mine, "it", "one")
    assert found(mine, "one") == ["it"]
    Message.objects.filter(conversation=made).update(text="two")
    assert found(mine, "one") == []


@pytest.mark.django_db(transaction=True)
def test_the_door(mine: "User") -> None:
    client = Client()
    client.force_login(mine)
    made = chat(mine, "it <b>bold</b>", "<script>alert(1)</script> needle")
    response = client.get("/api/search", {"q": "needle", "timezone": "Europe/Berlin"})
    [item] = response.json()["items"]
    message = Message.objects.get(conversation=made)
    assert item["url"] == f"/c/{made.pk}?m={message.pk}"
    assert item["snippet"] == [["<script>alert(1)</script> ", False], ["needle", True]]
    assert client.get("/api/search", {"q": "before:x"}).json()["problems"]
    assert client.get("/api/search", {"q": "x", "cursor": "x"}).status_code == 400
    assert client.get("/api/search", {"q": "x", "timezone": "../etc/passwd"}).status_code == 400
    assert client.get("/api/search", {"q": "x" * 401}).status_code == 400
    assert client.get("/api/search", {"q": "a\x00b"}).status_code == 400


def test_many_chats_with_the_same_moment(mine: "User") -> None:
    chats = [chat(mine, f"c{n}", "word") for n in range(45)]
    moment = timezone.now() - timedelta(days=1)
    Message.objects.filter(conversation__in=chats).update(created_at=moment, text="word")
    Conversation.objects.filter(pk__in=[c.pk for c in chats]).update(updated_at=moment)
    assert len(set(found(mine, "word"))) == len(found(mine, "word")) == 45
    assert len(set(found(mine, "pinned:no"))) == len(found(mine, "pinned:no")) == 45
