"""Moderation in the console: policies with their versions, rules, the replay, and the queue."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client

from moderation.evaluation import read_cases_file
from moderation.models import Decision, EditableRule, ModerationPolicy, PolicyVersion, Strike
from webapp.api_keys import create_api_key, rotate_api_key
from webapp.directory_settings import DirectorySettings
from webapp.management.commands import exportlabels
from webapp.models import ApiKey, User
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]
POLICIES = "/admin/moderation/moderationpolicy/"
QUEUE = "/admin/moderation/decision/"


@pytest.fixture
def policy() -> ModerationPolicy:
    ModerationPolicy.objects.all().delete()
    return ModerationPolicy.objects.create(name="House", content={"input": {"hate": {"note": 0.5}}})


def form_of(content: Any, **fields: Any) -> dict[str, Any]:
    return {
        "name": "House",
        "order": 5,
        "is_enabled": "on",
        "model_names": "*",
        "content": content if isinstance(content, str) else json.dumps(content),
        "note": "because",
        **fields,
    }


def decided(owner: User, **fields: Any) -> Decision:
    reasons = [{"category": "hate", "probability": 0.7, "threshold": 0.5, "action": "block"}]
    values = {"stage": "input", "source": "chat", "action": "block", "text": "a canary sings"}
    values |= {"reasons": reasons, "scores": {"hate": 0.7}, **fields}
    with as_system():
        return Decision.objects.create(owner=owner, **values)


def test_each_change_is_a_version_with_its_author(
    console: Client, admin: User, policy: ModerationPolicy
) -> None:
    blocked = {"input": {"hate": {"block": 0.9}}}
    path = f"{POLICIES}{policy.pk}/change/"
    assert console.post(path, form_of(blocked)).status_code == 302
    assert console.post(path, form_of({})).status_code == 302
    policy.refresh_from_db()
    assert (policy.version, policy.content) == (3, {})
    versions = list(PolicyVersion.objects.filter(policy_id=policy.pk).order_by("number"))
    assert [(one.number, one.author, one.note) for one in versions] == [
        (2, admin, "because"),
        (3, admin, "because"),
    ]
    page = console.get(path).content.decode()
    assert "content → input → hate → block" in page
    response = console.post(f"{POLICIES}versions/{versions[0].pk}/restore/")
    assert response.status_code == 302
    policy.refresh_from_db()
    assert (policy.version, policy.content) == (4, blocked)


def test_a_deleted_policy_can_be_had_back(console: Client, policy: ModerationPolicy) -> None:
    console.post(f"{POLICIES}{policy.pk}/delete/", {"post": "yes"})
    assert not ModerationPolicy.objects.exists()
    (gone,) = PolicyVersion.objects.filter(policy_id=policy.pk)
    assert gone.change == "deleted"
    console.post(f"{POLICIES}versions/{gone.pk}/restore/")
    assert ModerationPolicy.objects.get().content == policy.content
    noted = LogEntry.objects.latest("pk")
    assert noted.object_id == str(ModerationPolicy.objects.get().pk)
    assert noted.get_change_message() == f"As in version {gone.number}."


def test_a_version_whose_name_is_taken_by_now_is_not_had_back(
    console: Client, policy: ModerationPolicy
) -> None:
    console.post(f"{POLICIES}{policy.pk}/delete/", {"post": "yes"})
    (gone,) = PolicyVersion.objects.filter(policy_id=policy.pk)
    other = ModerationPolicy.objects.create(name="House")
    page = console.post(f"{POLICIES}versions/{gone.pk}/restore/", follow=True).content.decode()
    assert "is called &#x27;House&#x27; by now" in page
    assert ModerationPolicy.objects.get() == other


def test_a_version_that_says_what_no_policy_may_say_is_not_had_back(
    console: Client, policy: ModerationPolicy
) -> None:
    old = PolicyVersion.objects.create(
        policy_id=policy.pk,
        name="House",
        number=1,
        change="created",
        snapshot={"name": "House", "content": {"input": {"gone": {"block": 0.5}}}},
    )
    page = console.post(f"{POLICIES}versions/{old.pk}/restore/", follow=True).content.decode()
    assert "There is no category" in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "valid JSON"),
        ({"input": {"hat": {"block": 0.5}}}, "no category"),
        ({"input": {"hate": {"block": 7}}}, "input.hate.block"),
        ({"strikes": {"hate": -1}}, "strikes.hate"),
    ],
)
def test_nonsense_is_not_saved(
    console: Client, policy: ModerationPolicy, content: Any, said: str
) -> None:
    response = console.post(f"{POLICIES}{policy.pk}/change/", form_of(content))
    assert response.status_code == 200
    assert said in response.content.decode()
    policy.refresh_from_db()
    assert policy.version == 1


def test_a_policy_is_for_what_there_is(
    console: Client, alice: User, policy: ModerationPolicy
) -> None:
    key, _ = create_api_key(alice)
    Group.objects.create(name="choir")
    path = f"{POLICIES}{policy.pk}/change/"
    for field, name in (("tiers", "platinum"), ("groups", "chor"), ("key_prefixes", "vt_nobody")):
        page = console.post(path, form_of({}, **{field: name})).content.decode()
        assert f"There is none of this name: {name}." in page
    whom = {"tiers": "free", "groups": "choir", "key_prefixes": key.prefix}
    assert console.post(path, form_of({}, **whom)).status_code == 302
    policy.refresh_from_db()
    assert (policy.tiers, policy.groups, policy.key_prefixes) == (["free"], ["choir"], [key.prefix])


def test_a_policy_keeps_the_names_that_it_had_and_knows_those_of_the_directory(
    console: Client, alice: User, policy: ModerationPolicy, settings: Any
) -> None:
    path = f"{POLICIES}{policy.pk}/change/"
    whom = {"tiers": "gone", "groups": "gone", "key_prefixes": "vt_gone"}
    ModerationPolicy.objects.filter(pk=policy.pk).update(
        **{name: [value] for name, value in whom.items()}
    )
    assert console.post(path, form_of({}, **whom, order=7)).status_code == 302
    policy.refresh_from_db()
    assert (policy.order, policy.groups) == (7, ["gone"])
    settings.DIRECTORY = DirectorySettings((), "", groups={"staff of the house": "Staff"})
    page = console.post(path, form_of({}, **whom | {"groups": "gone,Staff,New"})).content.decode()
    assert "There is none of this name: New." in page
    assert console.post(path, form_of({}, **whom | {"groups": "Staff"})).status_code == 302
    policy.refresh_from_db()
    assert policy.groups == ["Staff"], "who comes with it makes it"


def test_a_policy_for_a_key_or_a_group_stays_so(
    console: Client, alice: User, policy: ModerationPolicy
) -> None:
    key, _ = create_api_key(alice)
    group = Group.objects.create(name="choir")
    policy.key_prefixes, policy.groups = ["vt_another12", key.prefix], ["choir"]
    policy.save()
    with as_user(alice.pk):
        rotate_api_key(key)
    form = {"name": "singers", "grant-TOTAL_FORMS": "0", "grant-INITIAL_FORMS": "0"}
    response = console.post(f"/admin/auth/group/{group.pk}/change/", form)
    assert response.status_code == 302, response.content.decode()
    policy.refresh_from_db()
    assert policy.key_prefixes == ["vt_another12", key.prefix]
    assert (policy.groups, policy.version) == (["singers"], 3)
    newest = PolicyVersion.objects.filter(policy_id=policy.pk).latest("pk")
    assert newest.snapshot["groups"] == ["singers"]


def test_a_replay_tells_what_would_differ_and_changes_nothing(
    console: Client, alice: User, policy: ModerationPolicy
) -> None:
    decided(alice, action="note", text="")
    decided(alice, action="block")
    page = console.get(f"{POLICIES}{policy.pk}/replay/").content.decode()
    assert "Of 2 texts: 1 the same, 0 stricter, 1 laxer." in page
    content = json.dumps({"input": {"hate": {"block": 0.6}}})
    page = console.post(f"{POLICIES}{policy.pk}/replay/", {"content": content}).content.decode()
    assert "Of 2 texts: 1 the same, 1 stricter, 0 laxer." in page
    page = console.post(f"{POLICIES}{policy.pk}/replay/", {"content": "{"}).content.decode()
    assert 'role="alert"' in page
    assert ModerationPolicy.objects.get().version == 1


def test_a_replay_of_the_same_policy_finds_no_difference(
    console: Client, alice: User, policy: ModerationPolicy
) -> None:
    """Also where something else had to be done than it says, or a classifier was away."""
    policy.content = {
        "input": {"hate": {"redact": 0.5, "note": 0.1}},
        "on_failure": {"input": "block"},
    }
    policy.save()
    instead = {"category": "hate", "probability": 0.7, "threshold": 0.5, "action": "block"}
    decided(alice, reasons=[{**instead, "wanted": "redact"}])
    away = [{"classifier": "heads", "reason": "it has died"}]
    decided(alice, reasons=[], scores={"hate": 0.0}, failed=away)
    page = console.get(f"{POLICIES}{policy.pk}/replay/").content.decode()
    assert "Of 2 texts: 2 the same, 0 stricter, 0 laxer." in page
    content = json.dumps({**policy.content, "on_failure": {}})
    page = console.post(f"{POLICIES}{policy.pk}/replay/", {"content": content}).content.decode()
    assert "Of 2 texts: 1 the same, 0 stricter, 1 laxer." in page


def test_a_replay_looks_at_one_stage(console: Client, alice: User, policy: Any) -> None:
    decided(alice, stage="input")
    decided(alice, stage="output")
    form = {"content": "{}", "stage": "output"}
    page = console.post(f"{POLICIES}{policy.pk}/replay/", form).content.decode()
    assert "Of 1 texts: 0 the same, 0 stricter, 1 laxer." in page


def test_a_replay_looks_at_those_for_whom_the_policy_is(
    console: Client, alice: User, bob: User, policy: ModerationPolicy
) -> None:
    members = Group.objects.create(name="choir")
    bob.groups.add(members)
    key = ApiKey.objects.create(user=bob, name="k", prefix="vt-abc", secret_hash="x", scopes=[])
    for owner in (alice, bob):
        decided(owner, model="small-1")
    decided(bob, model="large", api_key_id=key.pk)

    def num_texts(**whom: list[str]) -> str:
        ModerationPolicy.objects.filter(pk=policy.pk).update(
            **{"tiers": [], "groups": [], "key_prefixes": [], "model_names": [], **whom}
        )
        page = console.get(f"{POLICIES}{policy.pk}/replay/").content.decode()
        return page.partition('<p class="mb-2">Of ')[2].partition(" texts")[0]

    assert num_texts() == "3"
    assert num_texts(model_names=["small-*"]) == "2"
    assert num_texts(groups=["choir"]) == "2"
    assert num_texts(groups=["choir"], model_names=["small-*"]) == "1"
    assert num_texts(key_prefixes=["vt-abc"]) == "1"
    assert num_texts(tiers=[alice.tier_id]) == "3"
    assert num_texts(tiers=["enterprise"]) == "0"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=ahead)x", "no pattern of RE2"),
        ("(((a{1,1000}){1,1000}){1,1000})", "no pattern of RE2"),
        ("a*", "matches where there is nothing"),
    ],
)
def test_a_rule_that_cannot_be_used_is_not_saved(console: Client, pattern: str, said: str) -> None:
    form = {"name": "x", "category": "hate", "pattern": pattern, "probability": 1, "is_enabled": 1}
    response = console.post("/admin/moderation/editablerule/add/", form)
    assert said in response.content.decode()
    assert not EditableRule.objects.exists()


def test_a_rule_is_tried_on_its_examples(console: Client) -> None:
    form = {"name": "x", "category": "hate", "pattern": "(?i)heron", "probability": 1}
    add = "/admin/moderation/editablerule/add/"
    page = console.post(add, {**form, "must_match": "A Heron\nA duck"}).content.decode()
    assert "does not match: A duck" in page
    page = console.post(add, {**form, "must_not_match": "A Heron"}).content.decode()
    assert "matches: A Heron" in page
    assert console.post(add, {**form, "must_match": "A Heron"}).status_code == 302


def test_the_queue_shows_what_waits_first(console: Client, alice: User) -> None:
    waiting, later = decided(alice, review="open"), decided(alice, review="open")
    noted = decided(alice, action="note", text="", failed=[{"classifier": "x", "reason": "away"}])
    page = console.get(QUEUE).content.decode()
    places = [page.index(f"/decision/{row.pk}/change/") for row in (waiting, later, noted)]
    assert places == sorted(places)
    page = console.get(f"{QUEUE}?failed=yes").content.decode()
    assert f"/decision/{noted.pk}/change/" in page
    assert f"/decision/{waiting.pk}/change/" not in page
    path = f"{QUEUE}{waiting.pk}/change/"
    assert "a canary sings" in console.get(path).content.decode()


def test_what_was_wrong_counts_no_more(console: Client, admin: User, alice: User) -> None:
    row = decided(alice, review="open")
    with as_system():
        strike = Strike.objects.create(owner=alice, decision=row, points=2)
    path = f"{QUEUE}{row.pk}/change/"
    form = {"verdict": "overturn", "notes": "A song.", "is_harmless": "on"}
    assert console.post(path, form).status_code == 302
    with as_system():
        row.refresh_from_db()
        strike.refresh_from_db()
    assert (row.review, row.reviewer, row.notes, row.labels) == ("overturned", admin, "A song.", [])
    assert strike.lifted_at is not None


def test_notes_and_labels_can_be_taken_back(console: Client, alice: User) -> None:
    row = decided(alice, review="open")
    path = f"{QUEUE}{row.pk}/change/"

    def saved(**form: Any) -> tuple[str, list[str] | None, str]:
        assert console.post(path, form).status_code == 302
        with as_system():
            row.refresh_from_db()
        return row.review, row.labels, row.notes

    assert saved(notes="Hm.", labels=["hate"]) == ("open", ["hate"], "Hm.")
    assert saved(verdict="uphold", notes="Hm.", is_harmless="on") == ("upheld", [], "Hm.")
    assert saved(verdict="uphold", notes="") == ("upheld", None, "")
    assert saved(notes="So.", labels=["hate"]) == ("upheld", ["hate"], "So.")
    form = {"action": "overturn_chosen", "_selected_action": [str(row.pk)]}
    assert console.post(QUEUE, form).status_code == 302
    with as_system():
        row.refresh_from_db()
    assert (row.review, row.notes) == ("overturned", "So."), "of many at once nobody says any"


def test_labels_are_read_by_evalmoderation(alice: User, tmp_path: Path) -> None:
    decided(alice, labels=["hate/threatening"])
    decided(alice, labels=[], text="a song")
    decided(alice, text="nobody has said")
    decided(alice, labels=["hate"], text="")
    file = tmp_path / "labels.jsonl"
    call_command("exportlabels", str(file))
    cases = read_cases_file(file)
    assert [(case.text, case.is_unsafe) for case in cases] == [
        ("a canary sings", True),
        ("a song", False),
    ]
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandError, match="is no file"):
        call_command("exportlabels", str(tmp_path))


def test_labels_of_before_outlive_an_export_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OperationalError("the database is away")

    file = tmp_path / "labels.jsonl"
    file.write_text("{}\n")
    monkeypatch.setattr(exportlabels, "labelled", fail)
    with pytest.raises(OperationalError):
        call_command("exportlabels", str(file))
    assert file.read_text() == "{}\n"
    assert list(tmp_path.iterdir()) == [file]


def test_many_are_decided_at_once(console: Client, alice: User, bob: User) -> None:
    rows = [decided(owner, review="open") for owner in (alice, bob)]
    form = {"action": "uphold_chosen", "_selected_action": [str(row.pk) for row in rows]}
    assert console.post(QUEUE, form).status_code == 302
    with as_system():
        assert {row.review for row in Decision.objects.all()} == {"upheld"}


@pytest.mark.parametrize("action", ["uphold_chosen", "overturn_chosen"])
def test_who_may_only_look_decides_nothing(
    client: Client, alice: User, bob: User, action: str
) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.user_permissions.add(Permission.objects.get(codename="view_decision"))
    row = decided(alice, review="open")
    with as_system():
        strike = Strike.objects.create(owner=alice, decision=row, points=2)
    client.force_login(bob)
    path = QUEUE
    client.post(path, {"action": action, "_selected_action": [str(row.pk)]})
    with as_system():
        row.refresh_from_db()
        strike.refresh_from_db()
    assert (row.review, strike.lifted_at) == ("open", None)
    assert action not in client.get(path).content.decode()


def test_a_reviewer_leaves_own_cases_to_others_and_an_administrator_may(
    client: Client, admin: User, alice: User, bob: User
) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.user_permissions.set(Permission.objects.filter(codename__endswith="_decision"))
    own, other = decided(bob, review="open"), decided(alice, review="open")
    client.force_login(bob)
    answer = client.post(f"{QUEUE}{own.pk}/change/", {"verdict": "overturn", "notes": ""})
    assert answer.status_code == 403
    chosen = {"action": "overturn_chosen", "_selected_action": [own.pk, other.pk]}
    said = client.post(QUEUE, chosen, follow=True).content.decode()
    assert "Your own cases are for others to decide." in said
    with as_system():
        found = {row.pk: row.review for row in Decision.objects.all()}
    assert found == {own.pk: "open", other.pk: "overturned"}
    mine = decided(admin, review="open")
    client.force_login(admin)
    client.post(f"{QUEUE}{mine.pk}/change/", {"verdict": "uphold", "notes": ""})
    with as_system():
        mine.refresh_from_db()
    assert mine.review == "upheld"


def test_nobody_else_gets_in(client: Client, charlie: User, policy: ModerationPolicy) -> None:
    row = decided(charlie)
    for user in (None, charlie):
        if user:
            client.force_login(user)
        for path in (
            POLICIES,
            f"{POLICIES}{policy.pk}/replay/",
            f"{QUEUE}{row.pk}/change/",
            "/admin/moderation/editablerule/add/",
        ):
            response = client.get(path)
            assert response.status_code in (302, 403)
            assert b"canary" not in response.content
