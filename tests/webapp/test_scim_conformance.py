"""What python-scim's tester, written by others, finds: nothing that RFC 7643 and 7644 forbid."""

from typing import Any

import pytest
from scim2_tester import Status, check_server

from tests.sites import Site, SiteMaker
from tests.webapp.scim_client import TOKEN


def is_of_the_service(fault: Any) -> bool:
    """`type` and `primary` of the one address are read-only, and said to be: it counts them as lost."""
    told = str(fault.reason)
    return fault.title == "check_replace_attribute" and "type='work', primary=True" in told


def checked(site: Site) -> list[Any]:
    import httpx2
    from scim2_client.engines.httpx2 import SyncSCIMClient

    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=f"{site.url}/scim/v2", headers=headers, timeout=60) as http:
        return list(check_server(SyncSCIMClient(http)))


@pytest.mark.timeout(300)
def test_the_tester_of_others_finds_no_fault(make_site: SiteMaker) -> None:
    with make_site(VITRINE_SCIM_TOKEN=TOKEN) as site:
        found = checked(site)
    assert len(found) >= 50
    faults = [
        one
        for one in found
        if one.status in (Status.ERROR, Status.CRITICAL) and not is_of_the_service(one)
    ]
    assert not faults, "\n".join(f"{one.title}: {one.reason}" for one in faults)
