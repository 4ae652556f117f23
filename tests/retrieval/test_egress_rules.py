"""Which addresses are public, and what operators may permit."""

from ipaddress import ip_address

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from retrieval.egress_rules import Rules, is_public, parse_rules
from webapp.hosts import egress_rules

PRIVATE = (
    "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.1 "
    "127.255.255.255 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 "
    "192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 "
    "203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::2 ::127.0.0.1 "
    "::8.8.8.8 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 "
    "64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::8.8.8.8 100::1 2001::1 "
    "2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: "
    "2002:a9fe:a9fe::1 2002:a00:1:: 3fff::1 4000::1 5f00::1 fc00::1 fd12:3456::1 fd00:ec2::254 "
    "fe80::1 febf::1 fec0::1 ff02::1 ff0e::1 "
)
PUBLIC = (
    "1.1.1.1 8.8.8.8 93.184.215.14 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1 192.167.1.1 "
    "223.255.255.255 2606:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888 ::ffff:8.8.8.8 "
    "64:ff9b::808:808 2002:808:808::1 "
)


@pytest.mark.parametrize("address", PRIVATE.split())
def test_what_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    assert not Rules().permit("name.example", ip_address(address), 443)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_what_is_public(address: str) -> None:
    assert Rules().permit("name.example", ip_address(address), 443)
    assert not Rules().permit("name.example", ip_address(address), 8080)


@given(st.integers(0, 2**32 - 1))
def test_an_address_is_judged_alike_however_it_is_packed(number: int) -> None:
    plain = is_public(ip_address(number))
    for prefix in (0xFFFF << 32, 0x64FF9B << 96, 0x2002 << 112):
        shift = 80 if prefix == 0x2002 << 112 else 0
        assert is_public(ip_address(prefix | number << shift)) == plain


def test_an_own_address_is_not_public_to_us() -> None:
    mine = ip_address("8.8.4.4")
    assert not Rules().permit("our.example", mine, 443, [mine])
    assert parse_rules(["our.example"]).permit("our.example", mine, 443, [mine])


def test_a_permitted_name_may_be_private_but_not_link_local() -> None:
    rules = parse_rules(["Wiki.Example.org."])
    for address in ("10.1.2.3", "192.168.1.1", "127.0.0.1", "::1", "fd00::1", "8.8.8.8"):
        assert rules.permit("wiki.example.org", ip_address(address), 443)
        assert rules.permit("evil.example.org", ip_address(address), 443) == (address == "8.8.8.8")
    for address in (
        "169.254.169.254",
        "fe80::1",
        "224.0.0.1",
        "0.0.0.0",
        "::",
        "64:ff9b::a9fe:a9fe",
    ):
        assert not rules.permit("wiki.example.org", ip_address(address), 443)


def test_a_permitted_network_means_whatever_name() -> None:
    rules = parse_rules(["10.1.0.0/16", "fd00::/8", "169.254.169.254"])
    for address in (
        "10.1.2.3",
        "fd00::1",
        "169.254.169.254",
        "::ffff:10.1.2.3",
        "64:ff9b::a01:203",
    ):
        assert rules.permit("any.example", ip_address(address), 80)
        assert not rules.permit("any.example", ip_address(address), 8080)
    for address in ("10.2.0.1", "169.254.169.253", "fe80::1", "127.0.0.1"):
        assert not rules.permit("any.example", ip_address(address), 80)


def test_a_port_holds_for_what_it_stands_behind() -> None:
    rules = parse_rules(["wiki.example.org:8080", "[fd00::1]:9000", "10.0.0.0/8:3000"])
    assert rules.permit("wiki.example.org", ip_address("10.0.0.1"), 8080)
    assert rules.permit("wiki.example.org", ip_address("8.8.8.8"), 8080)
    assert not rules.permit("wiki.example.org", ip_address("10.0.0.1"), 443)
    assert not rules.permit("other.example.org", ip_address("8.8.8.8"), 8080)
    assert rules.permit("x", ip_address("fd00::1"), 9000)
    assert rules.permit("x", ip_address("10.9.9.9"), 3000)
    assert [port for port in (80, 443, 22, 3000, 8080) if rules.permit_port(port)] == [
        80,
        443,
        3000,
        8080,
    ]


@pytest.mark.parametrize(
    "entry",
    [
        "10.1.2.3/16",
        "10.1.2",
        "300.1.1.1",
        "wiki:0",
        "wiki:70000",
        "wiki:http",
        "http://wiki",
        "wi ki",
        "a/b",
        "[fd00::1",
        "*.example.org",
        ":80",
        "user@wiki",
        "-wiki",
        "fd00::/129",
        "0x7f.1",
    ],
)
def test_a_wrong_entry_stops_the_start_with_its_name(entry: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="VITRINE_EGRESS_ALLOW") as caught:
        egress_rules(["ok.example", entry])
    assert repr(entry) in str(caught.value)
