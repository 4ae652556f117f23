"""The admin console: who gets in, and what deleting a user takes along."""

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, Permission
from django.test import Client

from chat.budgets import today
from chat.models import Conversation, Usage
from inference.catalog import WorkerState
from inference.messages import EngineStats
from tests.inference.gpus import FakeNvml, install
from webapp.api_keys import create_api_key
from webapp.console_settings import UNFOLD
from webapp.models import ApiKey, Tier, User
from webapp.tenancy import as_system, as_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


def test_only_staff_get_in_and_only_by_the_one_door(
    client: Client, alice: User, admin: User
) -> None:
    assert client.get("/admin/").headers["Location"] == "/accounts/login/?next=/admin/"
    assert client.get("/admin/login/").headers["Location"].startswith("/accounts/login/")
    client.force_login(alice)
    assert client.get("/admin/", follow=True).status_code == 403
    client.force_login(admin)
    assert client.get("/admin/").status_code == 200


def test_deleting_a_user_takes_everything_along(console: Client, alice: User, bob: User) -> None:
    create_api_key(alice)
    for user in (alice, bob):
        with as_user(user.pk):
            Conversation.objects.create(owner=user, title=f"of {user}")
    page = console.get(f"/admin/webapp/user/{alice.pk}/delete/").content.decode()
    assert "conversation" in page.lower()
    response = console.post(f"/admin/webapp/user/{alice.pk}/delete/", {"post": "yes"})
    assert response.status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()
    with as_system():
        assert [one.owner_id for one in Conversation.objects.all()] == [bob.pk]


def test_deleting_many_users_works_too(console: Client, alice: User, bob: User) -> None:
    with as_user(alice.pk):
        Conversation.objects.create(owner=alice)
    form = {
        "action": "delete_selected",
        "_selected_action": [str(alice.pk), str(bob.pk)],
        "post": "yes",
    }
    assert console.post("/admin/webapp/user/", form).status_code == 302
    with as_system():
        assert not Conversation.objects.exists()


def test_an_administrator_does_not_see_what_people_write(console: Client, alice: User) -> None:
    with as_user(alice.pk):
        Conversation.objects.create(owner=alice, title="private")
    console.get("/admin/")
    assert not Conversation.objects.exists()  # in the scope that the request has left behind


def test_a_key_can_be_revoked_and_its_secret_is_nowhere(console: Client, alice: User) -> None:
    key, secret = create_api_key(alice, name="notebook")
    path = f"/admin/webapp/apikey/{key.pk}/change/"
    page = console.get(path).content.decode()
    assert key.prefix in page
    assert secret not in page
    assert key.secret_hash not in page
    form = {
        "name": "notebook",
        "model_names": "*",
        "revoked_at_0": "2026-01-01",
        "revoked_at_1": "00:00:00",
    }
    assert console.post(path, form).status_code == 302
    revoked_at = ApiKey.objects.get(pk=key.pk).revoked_at
    assert revoked_at is not None
    form |= {"revoked_at_0": "", "revoked_at_1": ""}
    assert console.post(path, form).status_code == 302
    assert ApiKey.objects.get(pk=key.pk).revoked_at == revoked_at
    assert console.get("/admin/webapp/apikey/add/").status_code == 403


def test_the_start_page_shows_what_was_asked(console: Client, alice: User) -> None:
    with as_user(alice.pk):
        Usage.objects.create(
            owner=alice,
            day=today(),
            model="vitrine-small",
            num_requests=3,
            prompt_tokens=4321,
            completion_tokens=1000,
        )
    page = console.get("/admin/").content.decode()
    assert "5,321" in page
    assert "alice@example.org" in page
    assert "vitrine-small" in page
    assert "Users with the most tokens" in page


def test_the_ledger_is_seen_and_not_changed(console: Client, alice: User) -> None:
    with as_user(alice.pk):
        row = Usage.objects.create(owner=alice, day=today(), model="small", prompt_tokens=77)
    listed = console.get("/admin/chat/usage/?q=alice").content.decode()
    assert "77" in listed
    assert console.get(f"/admin/chat/usage/{row.pk}/change/").status_code == 200
    assert console.get("/admin/chat/usage/add/").status_code == 403
    assert console.post(f"/admin/chat/usage/{row.pk}/delete/", {"post": "yes"}).status_code == 403


def test_what_a_tier_and_a_group_allow_is_changed_here_and_noted(
    console: Client, admin: User, alice: User
) -> None:
    form = {
        "name": "Free",
        "model_names": "vitrine-*,small",
        "features": ["tools"],
        "requests_per_minute": "7",
        "concurrent_runs": "1",
        "weight": "1.5",
        "api_priority": "background",
    }
    assert console.post("/admin/webapp/tier/free/change/", form).status_code == 302
    tier = Tier.objects.get(slug="free")
    assert (tier.model_names, tier.features) == (["vitrine-*", "small"], ["tools"])
    assert (tier.requests_per_minute, tier.tokens_per_day) == (7, None)
    grant = {
        "name": "Researchers",
        "grant-TOTAL_FORMS": "1",
        "grant-INITIAL_FORMS": "0",
        "grant-0-model_names": "large",
    }
    assert console.post("/admin/auth/group/add/", grant).status_code == 302
    alice.groups.add(Group.objects.get(name="Researchers"))
    assert User.objects.get(pk=alice.pk).granted_models == ["large"]
    log = console.get("/admin/admin/logentry/").content.decode()
    assert "Researchers" in log
    assert "Changed" in log
    assert console.post("/admin/webapp/tier/free/delete/", {"post": "yes"}).status_code == 403


def test_only_the_console_may_compile_scripts(console: Client) -> None:
    assert "unsafe-eval" in console.get("/admin/").headers["Content-Security-Policy"]
    for path in ("/settings/", "/accounts/login/", "/administration", "/"):
        policy = console.get(path).headers["Content-Security-Policy"]
        assert "unsafe" not in policy, path


def test_the_start_page_tells_of_models_that_are_named_and_not_there(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot be used" not in console.get("/admin/").content.decode()
    told = "VITRINE_DEFAULT_MODEL: there is no model org/gone."
    monkeypatch.setattr("chat.service.problems_now", lambda: [told])
    assert told in console.get("/admin/").content.decode()


def test_the_sidebar_leads_to_every_list_that_somebody_may_see(
    console: Client, client: Client, bob: User
) -> None:
    listed = {
        entry["link"] for group in UNFOLD["SIDEBAR"]["navigation"] for entry in group["items"]
    }
    page = console.get("/admin/").content.decode()
    for link in listed:
        assert f'<a href="{link}"' in page, link
        assert console.get(str(link), follow=True).status_code == 200, link
    bob.is_staff = True
    bob.save(update_fields=["is_staff"])
    bob.user_permissions.add(Permission.objects.get(codename="view_invitation"))
    client.force_login(bob)
    page = client.get("/admin/").content.decode()
    seen = {str(link) for link in listed if f'<a href="{link}"' in page}
    assert seen == {"/admin/", "/admin/webapp/invitation/"}


@pytest.fixture
def helper(bob: User) -> User:
    """Somebody who may look after accounts, and nothing more."""
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    names = ("view_user", "change_user", "delete_user", "change_group", "change_emailaddress")
    bob.user_permissions.set(Permission.objects.filter(codename__in=names))
    return bob


def test_who_looks_after_accounts_makes_nobody_an_administrator(
    client: Client, helper: User, alice: User
) -> None:
    strong = Group.objects.create(name="strong")
    strong.permissions.set(Permission.objects.filter(codename="delete_tier"))
    plain = Group.objects.create(name="plain")
    client.force_login(helper)
    everything = {
        "tier": "free",
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "groups": [str(strong.pk)],
        "user_permissions": [str(Permission.objects.get(codename="change_tier").pk)],
    }
    for user in (alice, helper):
        form = {**everything, "email": user.email, "name": f"new {user.pk}"}
        assert client.post(f"/admin/webapp/user/{user.pk}/change/", form).status_code == 302
        user.refresh_from_db()
        assert user.name == f"new {user.pk}"
        assert not user.is_superuser
        assert not user.groups.exists()
    assert not alice.is_staff
    assert not alice.user_permissions.exists()
    assert helper.user_permissions.count() == 5
    permissions = [str(Permission.objects.get(codename="change_tier").pk)]
    form = {"name": "plain still", "permissions": permissions}
    form |= {"grant-TOTAL_FORMS": "0", "grant-INITIAL_FORMS": "0"}
    assert client.post(f"/admin/auth/group/{plain.pk}/change/", form).status_code == 302
    assert not plain.permissions.exists()


def test_who_looks_after_accounts_does_not_enter_as_an_administrator(
    client: Client, helper: User, admin: User, alice: User
) -> None:
    client.force_login(helper)
    new = {"password1": "an-evil-new-password", "password2": "an-evil-new-password"}
    address = EmailAddress.objects.create(user=admin, email=admin.email, primary=True)
    for path, form in (
        (f"webapp/user/{admin.pk}/change", {"email": helper.email, "tier": "free"}),
        (f"webapp/user/{admin.pk}/password", new),
        (f"webapp/user/{admin.pk}/delete", {"post": "yes"}),
        (f"account/emailaddress/{address.pk}/change", {"email": "evil@example.org"}),
    ):
        assert client.post(f"/admin/{path}/", form).status_code == 403, path
    assert client.post(f"/admin/webapp/user/{alice.pk}/password/", new).status_code == 302
    fresh = User.objects.get(pk=admin.pk)
    assert (fresh.password, fresh.email) == (admin.password, admin.email)
    address.refresh_from_db()
    assert address.email == admin.email


def test_who_looks_after_accounts_connects_nothing_with_an_administrator(
    client: Client, helper: User, admin: User, alice: User
) -> None:
    names = ("socialaccount", "authenticator", "emailaddress")
    codes = [f"{verb}_{name}" for verb in ("add", "change", "delete", "view") for name in names]
    helper.user_permissions.set(Permission.objects.filter(codename__in=codes))
    client.force_login(helper)
    links, addresses = "socialaccount/socialaccount", "account/emailaddress"
    form = {"provider": "openid", "uid": "mine", "extra_data": '{"name": "m"}'}
    assert client.post(f"/admin/{links}/add/", form | {"user": alice.pk}).status_code == 302
    own = SocialAccount.objects.create(user=helper, provider="openid", uid="own")
    step = Authenticator.objects.create(user=admin, type="totp", data={})
    evil = {"email": "evil@example.org", "verified": "on"}
    for path, sent in (
        (f"{links}/add", form | {"uid": "new", "user": admin.pk}),
        (f"{links}/{own.pk}/change", form | {"uid": "own", "user": admin.pk}),
        (f"{addresses}/add", evil | {"user": admin.pk}),
        (f"mfa/authenticator/{step.pk}/delete", {"post": "yes"}),
    ):
        assert client.post(f"/admin/{path}/", sent).status_code == 403, path
    assert not SocialAccount.objects.filter(user=admin).exists()
    assert not EmailAddress.objects.filter(email="evil@example.org").exists()
    assert Authenticator.objects.filter(user=admin).exists()


def test_the_start_page_shows_workers_and_gpus(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = {"used_gib": 30, "percent": 62, "celsius": 71, "milliwatts": 412_500}
    install(monkeypatch, FakeNvml([full, {"used_gib": 8}]))
    stats = EngineStats(num_running=5, num_waiting=44, kv_tokens_total=2048)
    worker = WorkerState("org/<b>large", 2, "ready", ("GPU-b",), True, 3, stats)
    monkeypatch.setattr("chat.service.workers_now", lambda: [worker])
    page = " ".join(console.get("/admin/").content.decode().split())
    assert "org/&lt;b&gt;large (2)</td><td>ready, slow</td>" in page
    assert '0: NVIDIA H100</td><td class="text-right">30.0 GB (38 %)' in page
    for told in ("62 %", ">71<", ">413<", "Models in memory", "0 of 2,048 tokens"):
        assert told in page
    _, second = page.split("1: NVIDIA H100")
    assert second.index("org/&lt;b&gt;large") < second.index("</tr>"), "the model is on this one"
    install(monkeypatch, None)
    assert ">GPUs<" not in console.get("/admin/").content.decode()
