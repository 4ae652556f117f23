"""Taking one's data along, and ending one's account."""

import asyncio
import io
import json
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.db import connection, models
from django.test import Client
from django.utils import timezone

from chat import file_store, library
from chat.api_models import KeptAnswer, StoredResponse
from chat.cache_models import CachedAnswer
from chat.ids import uuid7
from chat.models import ApiFile, Batch, BatchResult, Conversation, Message, Role, Usage
from chat.personal_models import Assistant, Memory, SavedPrompt
from chat.schedule_models import Repeats, Schedule
from moderation.models import PolicyVersion
from tests.conftest import PASSWORD
from tests.sites import wait_until
from webapp.api_keys import create_api_key
from webapp.models import ApiKey, Invitation, SignIn, User
from webapp.own_data import LastAdministrator, suspend_for_good
from webapp.tenancy import as_system, as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_redis"),
]

EXPORT, DELETE = "/settings/export", "/settings/delete-account"


@pytest.fixture(autouse=True)
def no_files() -> None:
    """Those of tests before, whose rows went with their database."""
    for path in file_store.folder().iterdir():
        path.unlink()


def something_of(user: User, text: str) -> None:
    with as_user(user.pk):
        chat = Conversation.objects.create(owner=user, title=f"about {text}")
        usage = {"completion_tokens": 3}
        parts = [{"type": "text", "text": text}]
        Message.objects.create(
            conversation=chat, role=Role.ASSISTANT, text=text, parts=parts, usage=usage
        )
        Memory.objects.create(owner=user, text=f"memory {text}", conversation=chat)
        Assistant.objects.create(owner=user, name=f"assistant {text}")
        SavedPrompt.objects.create(owner=user, name="say", text=f"prompt {text}")
        at = {"at": "08:00", "zone": "UTC", "repeats": Repeats.DAILY}
        Schedule.objects.create(owner=user, name="news", text=f"schedule {text}", **at)
        today = timezone.now().date()
        Usage.objects.create(owner=user, day=today, model=f"model-{text}", completion_tokens=3)
        StoredResponse.objects.create(owner=user, thread=uuid7(), input=[text], body={"said": text})
        file = ApiFile.objects.create(
            owner=user, purpose="batch", name=f"../{text}.jsonl", size_bytes=len(text)
        )
        file_store.path_of(file.pk).write_text(json.dumps(text))
        batch = Batch.objects.create(
            owner=user, input_file=file.pk, expires_at=timezone.now(), metadata={"about": text}
        )
        BatchResult.objects.create(owner=user, batch=batch, number=1, is_error=False, text=text)
        KeptAnswer.objects.create(
            owner=user, route="/v1/x", key=text, request_hash="h", status=200, body=text.encode()
        )
        CachedAnswer.objects.create(
            owner=user, key=text, context="c", question=text, text=text, expires_at=timezone.now()
        )


def exported(client: Client) -> dict[str, Any]:
    response = client.get(EXPORT)
    assert response.headers["Content-Type"] == "application/zip"
    assert "no-store" in response.headers["Cache-Control"]

    async def received() -> bytes:
        return b"".join([piece async for piece in response.streaming_content])

    content = asyncio.run(received())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def signed_in(user: User) -> Client:
    client = Client(HTTP_USER_AGENT="Firefox/1.0 Linux")
    client.force_login(user)
    client.get("/settings/sessions")
    return client


def proved(user: User) -> Client:
    client = signed_in(user)
    response = client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": DELETE})
    assert response.headers["Location"] == DELETE
    return client


def test_the_export_holds_everything_of_a_person_and_nothing_that_opens_a_door(
    alice: User, bob: User
) -> None:
    something_of(alice, "walrus")
    something_of(bob, "canary")
    _, secret = create_api_key(alice, name="notebook")
    client = signed_in(alice)
    files = exported(client)
    (kept,) = [name for name in files if name.startswith("files/")]
    assert kept.endswith("-walrus.jsonl")
    assert files.pop(kept) == "walrus"
    assert set(files) == {
        "account.json",
        "personalisation.json",
        "memories.json",
        "assistants.json",
        "prompts.json",
        "schedules.json",
        "folders.json",
        "shared-links.json",
        "ledger.json",
        "responses.json",
        "files.json",
        "batches.json",
        "collections.json",
        "accesses.json",
        "cached-answers.json",
        "kept-answers.json",
        "moderation.json",
        "strikes.json",
        "suspensions.json",
        "documents.json",
        "usage.json",
        "chats-00001.json",
    }
    account = files["account.json"]
    assert (account["email"], account["tier_id"]) == (alice.email, "free")
    assert account["api_keys"][0]["name"] == "notebook"
    assert account["sign_ins"][0]["user_agent"] == "Firefox/1.0 Linux"
    assert files["assistants.json"][0]["name"] == "assistant walrus"
    assert files["memories.json"][0]["text"] == "memory walrus"
    assert files["prompts.json"][0]["text"] == "prompt walrus"
    assert files["schedules.json"][0]["text"] == "schedule walrus"
    assert files["usage.json"][0]["usage"] == {"completion_tokens": 3}
    assert files["ledger.json"][0]["model"] == "model-walrus"
    assert files["responses.json"][0]["body"] == {"said": "walrus"}
    assert files["files.json"][0]["name"] == "../walrus.jsonl"
    assert files["batches.json"][0]["metadata"] == {"about": "walrus"}
    assert "lease_owner" not in files["batches.json"][0]
    assert files["kept-answers.json"][0]["body"] == "walrus"
    assert files["cached-answers.json"][0]["question"] == "walrus"
    assert files["chats-00001.json"]["schema"] == "vitrine.chats"
    everything = json.dumps(files)
    assert everything.count("about walrus") == 1
    for hidden in ("canary", secret, alice.password, client.session.session_key, "secret_hash"):
        assert hidden not in everything


def test_a_memory_outlives_the_chat_it_was_said_in(alice: User) -> None:
    something_of(alice, "walrus")
    with as_user(alice.pk):
        Conversation.objects.get().delete()
        row = Memory.objects.get()
    assert (row.text, row.conversation_id) == ("memory walrus", None)


OF_ACCOUNT = "account.json"
IN_EXPORT = {
    "account.EmailAddress": OF_ACCOUNT,
    "admin.LogEntry": OF_ACCOUNT,
    "chat.ApiFile": "files.json",
    "chat.Assistant": "assistants.json",
    "chat.Batch": "batches.json",
    "chat.CachedAnswer": "cached-answers.json",
    "chat.Conversation": "chats-00001.json",
    "chat.Folder": "folders.json",
    "chat.KeptAnswer": "kept-answers.json",
    "chat.Memory": "memories.json",
    "chat.Personalisation": "personalisation.json",
    "chat.SavedPrompt": "prompts.json",
    "chat.Schedule": "schedules.json",
    "chat.Share": "shared-links.json",
    "chat.StoredResponse": "responses.json",
    "chat.Usage": "ledger.json",
    "mfa.Authenticator": OF_ACCOUNT,
    "moderation.Decision": "moderation.json",
    "moderation.Strike": "strikes.json",
    "moderation.Suspension": "suspensions.json",
    "retrieval.Access": "accesses.json",
    "retrieval.Collection": "collections.json",
    "retrieval.Document": "documents.json",
    "socialaccount.SocialAccount": OF_ACCOUNT,
    "webapp.ApiKey": OF_ACCOUNT,
    "webapp.ScimPerson": OF_ACCOUNT,
    "webapp.SignIn": OF_ACCOUNT,
    "webapp.User_groups": OF_ACCOUNT,
}
NOT_IN_EXPORT = {
    "chat.BatchResult": "a part of a file that is being written, and in files.json when it is",
    "chat.ChatImport": "what is being brought in, and was brought by its owner",
    "chat.ChatOrigin": "numbers of chats elsewhere, by which they are not brought in twice",
    "chat.MessageVector": "made anew of the chats",
    "chat.Reservation": "held for an answer that is being written",
    "chat.SearchEntry": "made anew of the chats",
    "moderation.PolicyVersion": "the site's; its author is in the log of the console",
    "webapp.Invitation": "an administrator's; it goes with the account",
    "webapp.User_user_permissions": "the site's",
}
NOT_DELETED = {
    "chat.MessageVector": "the database deletes it with its message",
    "chat.SearchEntry": "the database deletes it with its chat",
    "moderation.Decision": "that of others whom they reviewed, signed as the console's log is",
    "moderation.PolicyVersion": "the site's, signed as the console's log is",
    "moderation.Suspension": "that of others whom they reviewed, signed as the console's log is",
    "retrieval.Document": "of somebody else's collection, without its author then",
    "webapp.Invitation": "deleted with the account that it made (own_data.delete)",
}


def _of_people() -> dict[str, set[Any]]:
    """Models with a key to a user, and what becomes of a row when its user goes."""
    found: dict[str, set[Any]] = {}
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.concrete_fields:
            if field.is_relation and field.related_model is User:
                remote: Any = field.remote_field
                found.setdefault(model._meta.label, set()).add(remote.on_delete)
    return found


def test_every_kind_of_row_that_somebody_has_is_exported_or_says_why_not(alice: User) -> None:
    assert set(_of_people()) == set(IN_EXPORT) | set(NOT_IN_EXPORT)
    assert not set(IN_EXPORT) & set(NOT_IN_EXPORT)
    assert set(IN_EXPORT.values()) == set(exported(signed_in(alice))) - {"usage.json"}


def test_every_kind_of_row_that_somebody_has_goes_with_them_or_says_why_not() -> None:
    stay = {label for label, ends in _of_people().items() if ends != {models.CASCADE}}
    assert stay == set(NOT_DELETED)


def test_what_an_administrator_changed_stays_on_record(admin: User, alice: User, bob: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True, is_staff=True, tier="admin")
    client = proved(alice)
    client.post(f"/admin/webapp/user/{bob.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(pk=bob.pk).exists()
    acts = json.dumps(exported(client)[OF_ACCOUNT]["administrative_acts"])
    assert "Bob" in acts
    with as_system():
        version = PolicyVersion.objects.create(
            policy_id=uuid7(), number=1, change="created", snapshot={}, author=alice
        )
    assert client.post(DELETE, {"email": alice.email}).status_code == 302
    assert not User.objects.filter(pk=alice.pk).exists()
    (act,) = LogEntry.objects.filter(object_id=str(bob.pk))
    version.refresh_from_db()
    assert version.author == act.user
    assert str(alice.pk) in act.user.name
    assert "alice" not in f"{act.user.email} {act.user.name}"
    assert not act.user.is_active
    assert not act.user.has_usable_password()
    assert not act.user.is_staff


def test_an_invitation_goes_with_the_account_that_it_made(alice: User, bob: User) -> None:
    for user in (alice, bob):
        Invitation.objects.create(
            email=user.email, used_by=user, secret_hash=user.email, expires_at=timezone.now()
        )
    assert proved(alice).post(DELETE, {"email": alice.email}).status_code == 302
    assert [one.email for one in Invitation.objects.all()] == [bob.email]


def test_of_nothing_the_export_is_whole_too(alice: User) -> None:
    files = exported(signed_in(alice))
    assert files["chats-00001.json"]["chats"] == []
    assert files["usage.json"] == []


def test_strangers_export_and_delete_nothing(alice: User) -> None:
    for response in (Client().get(EXPORT), Client().get(DELETE), Client().post(DELETE)):
        assert response.headers["Location"].startswith("/accounts/login/")
    _, secret = create_api_key(alice)
    program = Client(headers={"Authorization": f"Bearer {secret}"})
    assert program.get(EXPORT).status_code == 403
    assert program.post(DELETE, {"email": alice.email}).status_code == 403
    assert User.objects.filter(pk=alice.pk).exists()


def test_deleting_asks_for_a_proof_and_for_the_address(alice: User) -> None:
    thief = signed_in(alice)
    for response in (thief.get(DELETE), thief.post(DELETE, {"email": alice.email})):
        assert response.headers["Location"].startswith("/accounts/reauthenticate/")
    client = proved(alice)
    assert client.get(DELETE).status_code == 200
    for wrong in ("", "alice", "bob@example.org"):
        assert client.post(DELETE, {"email": wrong}).status_code == 400
    assert User.objects.filter(pk=alice.pk, is_active=True).exists()


def test_everything_goes_and_every_door_closes(alice: User, bob: User, settings: Any) -> None:
    settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    something_of(alice, "walrus")
    something_of(bob, "canary")
    create_api_key(alice)
    elsewhere = signed_in(alice)
    client = proved(alice)
    response = client.post(DELETE, {"email": " Alice@Example.org "})
    assert response.headers["Location"] == "/accounts/login/"
    assert client.get("/settings/").status_code == 302
    assert elsewhere.get("/settings/").status_code == 302
    with as_system():
        assert not User.objects.filter(pk=alice.pk).exists()
        assert not ApiKey.objects.exists()
        assert not SignIn.objects.filter(user_id=alice.pk).exists()
        kept = {path.name for path in file_store.folder().iterdir()}
        assert kept == {ApiFile.objects.get().pk.hex}, "bob's, and nothing of alice's"
        kinds = (
            Conversation,
            Memory,
            Assistant,
            SavedPrompt,
            Schedule,
            ApiFile,
            Batch,
            BatchResult,
        )
        for model in kinds:
            owners = set(model._default_manager.values_list("owner_id", flat=True))
            assert owners == {bob.pk}
        assert list(Message.objects.values_list("text", flat=True)) == ["canary"]
    wait_until(lambda: mail.outbox, what="a letter")
    assert mail.outbox[0].to == [alice.email]


def test_chats_in_the_bin_go_too(alice: User) -> None:
    something_of(alice, "walrus")
    with as_user(alice.pk):
        chat = Conversation.objects.get()
        library.change(alice, chat.pk, {"deleted": True}, None)
    proved(alice).post(DELETE, {"email": alice.email})
    assert not User.objects.filter(pk=alice.pk).exists()
    with connection.cursor() as cursor:
        cursor.execute("SET vitrine.scope = 'system'; SET vitrine.deleted = 'shown'")
        cursor.execute("SELECT count(*) FROM chat_conversation")
        assert cursor.fetchone() == (0,)


def test_the_last_administrator_stays(admin: User, alice: User) -> None:
    client = proved(admin)
    refused = client.post(DELETE, {"email": admin.email})
    assert refused.status_code == 400
    assert "only administrator" in refused.content.decode()
    assert User.objects.filter(pk=admin.pk, is_active=True).exists()
    other = User.objects.create_superuser("other@example.org", PASSWORD)
    assert proved(admin).post(DELETE, {"email": admin.email}).status_code == 302
    assert set(User.objects.filter(is_superuser=True)) == {other}


def test_of_two_last_administrators_one_stays(admin: User) -> None:
    other = User.objects.create_superuser("other@example.org", PASSWORD)
    together = threading.Barrier(2)

    def leave(user: User) -> bool:
        try:
            together.wait()
            suspend_for_good(user)
        except LastAdministrator:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(leave, (admin, other))) == [False, True]
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1


def test_who_has_nothing_to_prove_it_with_signs_in_anew(alice: User) -> None:
    """As somebody does who comes by a provider alone."""
    alice.set_unusable_password()
    alice.save()
    client = signed_in(alice)
    page = client.get(DELETE).content.decode()
    assert "Sign out and in again first" in page
    assert client.post(DELETE, {"email": alice.email}).status_code == 403
    assert User.objects.filter(pk=alice.pk, is_active=True).exists()
