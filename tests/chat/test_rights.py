"""What somebody may do: the tier's, the groups' and what an API key leaves of it."""

import pytest
from django.contrib.auth.models import Group
from django.db.models import QuerySet

from chat.rights import Rights
from inference import UnknownModel
from webapp.api_keys import create_api_key, find_api_key
from webapp.models import GroupGrant, Tier, User, granted_models

pytestmark = pytest.mark.django_db


def now(user: User) -> User:
    return User.objects.get(pk=user.pk)


def test_a_new_installation_keeps_no_model_from_anybody(alice: User) -> None:
    assert Rights(now(alice)).may_use("anything/at-all")


def test_a_tier_names_its_models_and_a_group_adds_to_them(alice: User, bob: User) -> None:
    Tier.objects.filter(slug="free").update(model_names=["vitrine-*", "exact"])
    group = Group.objects.create(name="Researchers")
    GroupGrant.objects.create(group=group, model_names=["large", "lab-?"])
    GroupGrant.objects.create(group=Group.objects.create(name="Others"), model_names=["*"])
    alice.groups.add(group)
    rights = Rights(now(alice))
    for model in ("vitrine-small", "exact", "large", "lab-1"):
        assert rights.may_use(model), model
    for model in ("exactly", "Vitrine-small", "lab-12", "", "other"):
        assert not rights.may_use(model), model
    assert not Rights(now(bob)).may_use("large")


def test_a_user_just_made_has_groups_too(alice: User) -> None:
    group = Group.objects.create(name="Researchers")
    GroupGrant.objects.create(group=group, model_names=["large"])
    alice.groups.add(group)
    assert alice.granted_models == now(alice).granted_models == ["large"]


def test_a_key_takes_away_and_never_adds(alice: User) -> None:
    Tier.objects.filter(slug="free").update(model_names=["small", "middle"])
    group = Group.objects.create(name="Researchers")
    GroupGrant.objects.create(group=group, model_names=["granted"])
    alice.groups.add(group)
    _, secret = create_api_key(alice, model_names=["small", "large", "granted"])
    key = find_api_key(secret)
    assert key is not None
    rights = Rights(key.user, key)
    names = ("small", "middle", "large", "granted")
    assert [rights.may_use(name) for name in names] == [True, False, False, True]


def test_what_may_not_be_used_is_as_unknown_as_what_is_not_there(alice: User) -> None:
    Tier.objects.filter(slug="free").update(model_names=["small"])
    rights = Rights(now(alice))
    with pytest.raises(UnknownModel) as theirs:
        rights.check_models(["small", "large"])
    assert str(theirs.value) == str(UnknownModel("large"))


def test_a_tier_without_tools_offers_none(alice: User) -> None:
    assert Rights(now(alice)).tools
    Tier.objects.filter(slug="free").update(features=[])
    assert Rights(now(alice)).tools == ()


def test_requests_find_room_by_user_and_by_key(alice: User) -> None:
    key, _ = create_api_key(alice, requests_per_minute=3)
    of_user, of_key = Rights(now(alice), key).windows()
    assert (of_user.limit, of_key.limit) == (10, 3)
    assert of_user.key == Rights(now(alice)).windows()[0].key
    Tier.objects.filter(slug="free").update(requests_per_minute=None)
    assert Rights(now(alice)).windows() == []


def test_users_are_asked_for_by_queries_that_share_nothing(alice: User) -> None:
    """Threads compile theirs at the same time, each in place."""
    plain = QuerySet(User).select_related("tier").annotate(granted_models=granted_models("pk"))
    one, other = User.objects.all(), User.objects.all()
    assert str(one.query) == str(other.query) == str(plain.query)
    within, of_other = (each.query.annotations["granted_models"] for each in (one, other))
    assert within.query is not of_other.query
    group = Group.objects.create(name="Researchers")
    GroupGrant.objects.create(group=group, model_names=["large"])
    alice.groups.add(group)
    assert [user.granted_models for user in group.user_set.all()] == [["large"]]
