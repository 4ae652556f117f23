"""VITRINE_LDAP_…: what is read, and what stops the start."""

import ssl
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.webapp.slapd import Slapd
from webapp.directory_settings import DirectorySettings, LdapServer, directory_settings
from webapp.providers import sign_in_providers

USUAL = {"URL": "ldaps://ldap.example.org", "USER_BASE": "ou=people,dc=example,dc=org"}


def configured(monkeypatch: pytest.MonkeyPatch, **variables: str) -> DirectorySettings | None:
    for name, value in variables.items():
        monkeypatch.setenv(f"VITRINE_LDAP_{name}", value)
    return directory_settings()


def test_there_is_none_without_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(monkeypatch) is None


def test_little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    found = configured(monkeypatch, **USUAL)
    assert found is not None
    assert found.servers == (LdapServer("ldap.example.org", 636, True),)
    assert found.user_filter == "(|(uid=%(login)s)(mail=%(login)s))"
    assert (found.tls.verify_mode, found.tls.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_everything_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slapd: Slapd) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    found = configured(
        monkeypatch,
        URL="ldap://a.example.org, ldap://[2001:db8::1]:3890",
        STARTTLS="true",
        CA_FILE=str(slapd.ca_file),
        TIMEOUT_S="9",
        BIND_DN="vitrine@example.org",
        BIND_PASSWORD_FILE=str(tmp_path / "secret"),
        USER_BASE="dc=example,dc=org",
        USER_FILTER="(&(objectClass=user)(sAMAccountName=%(login)s))",
        UNIQUE_ID="objectGUID",
        GROUP_BASE="ou=Vitrine,dc=example,dc=org",
        GROUP_FILTER="(member:1.2.840.113556.1.4.1941:=%(dn)s)",
        GROUPS="Staff, R&D = research",
        TIERS="Bosses=enterprise,Staff=pro",
        ADMINISTRATORS="Vitrine Admins",
    )
    assert found is not None
    assert [(one.host, one.port) for one in found.servers] == [
        ("a.example.org", 389),
        ("2001:db8::1", 3890),
    ]
    assert (found.starttls, found.timeout_s, found.bind_password) == (True, 9, "s3cret")
    assert found.groups == {"staff": "Staff", "r&d": "research"}
    assert found.tiers == (("bosses", "enterprise"), ("staff", "pro"))
    assert found.administrators == "vitrine admins"
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"USER_BASE": "dc=example"}, "URL"),
        ({"URL": "ldaps://ldap.example.org"}, "USER_BASE"),
        ({**USUAL, "URL": "https://ldap.example.org"}, "URL"),
        ({**USUAL, "URL": "ldaps://"}, "URL"),
        ({**USUAL, "URL": "ldaps://host:port"}, "URL"),
        ({**USUAL, "URL": "ldaps://user@host/dc=example"}, "URL"),
        ({**USUAL, "URL": "ldap://ldap.example.org"}, "in the clear"),
        ({**USUAL, "URL": "ldaps://a, ldap://ldap.example.org"}, "in the clear"),
        ({**USUAL, "URL": "ldap://127.example.org.evil"}, "in the clear"),
        ({**USUAL, "STARTTLS": "true"}, "STARTTLS"),
        ({**USUAL, "CA_FILE": "/nowhere.pem"}, "CA_FILE"),
        ({**USUAL, "CA_FILE": __file__}, "CA_FILE"),
        ({**USUAL, "BIND_DN": "cn=vitrine"}, "BIND_PASSWORD"),
        ({**USUAL, "BIND_PASSWORD": "secret"}, "BIND_DN"),
        ({**USUAL, "USER_BASE": "people"}, "USER_BASE"),
        ({**USUAL, "USER_FILTER": "(uid=*)"}, "USER_FILTER"),
        ({**USUAL, "USER_FILTER": "(&(uid=%(login)s)"}, "USER_FILTER"),
        ({**USUAL, "GROUP_BASE": "ou=groups", "GROUP_FILTER": "(member=x)"}, "GROUP_FILTER"),
        ({**USUAL, "GROUPS": "staff"}, "GROUP_BASE"),
        ({**USUAL, "ADMINISTRATORS": "admins"}, "GROUP_BASE"),
        ({**USUAL, "GROUP_BASE": "ou=groups", "TIERS": "staff"}, "TIERS"),
        ({**USUAL, "TIMEOUT_S": "0"}, "TIMEOUT_S"),
        ({**USUAL, "TIMEOUT": "5"}, "VITRINE_LDAP_TIMEOUT is unknown"),
    ],
)
def test_half_of_one_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=named) as refused:
        configured(monkeypatch, **variables)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["ldap://localhost", "ldap://127.0.0.1:3890", "ldap://[::1]"])
def test_in_the_clear_goes_on_this_machine(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    assert configured(monkeypatch, **{**USUAL, "URL": url}) is not None


def test_in_the_clear_elsewhere_goes_where_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(monkeypatch, **{**USUAL, "URL": "ldap://ldap.lan"}, PLAINTEXT="true")


def test_no_provider_is_called_as_the_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRINE_OIDC_LDAP_URL", "https://login.example.org")
    monkeypatch.setenv("VITRINE_OIDC_LDAP_CLIENT_ID", "id")
    monkeypatch.setenv("VITRINE_OIDC_LDAP_CLIENT_SECRET", "secret")
    assert len(sign_in_providers()) == 1
    monkeypatch.setenv("VITRINE_LDAP_URL", "ldaps://ldap.example.org")
    with pytest.raises(ImproperlyConfigured, match="VITRINE_LDAP_URL"):
        sign_in_providers()
