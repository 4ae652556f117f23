"""A real OpenLDAP server on a folder and loopback ports of its own, with a certificate of its own CA."""

import contextlib
import datetime
import ipaddress
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.sites import free_port, wait_until
from webapp.directory_settings import DirectorySettings, LdapServer
from webapp.ldap3_import import ldap3

PROGRAM = shutil.which("slapd") or "/usr/sbin/slapd"
SUFFIX = "dc=example,dc=org"
PEOPLE, GROUPS = f"ou=people,{SUFFIX}", f"ou=groups,{SUFFIX}"
ROOT_DN, ROOT_PASSWORD = f"cn=root,{SUFFIX}", "root's secret"
SERVICE_DN, SERVICE_PASSWORD = f"cn=vitrine,{SUFFIX}", "the service's secret"

_CONFIG = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
# As Active Directory has it: 16 bytes.
attributetype ( 1.2.840.113556.1.4.2 NAME 'objectGUID' EQUALITY octetStringMatch
    SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.key
database mdb
suffix "{suffix}"
rootdn "{root_dn}"
rootpw "{root_password}"
directory {folder}/data
dbnosync
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{service_dn}" read by * none
"""


class Slapd:
    """Use as a context manager. `entries` are made by `add` and gone after `clear`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.tls_port = free_port(), free_port()
        self.ca_file = folder / "ca.pem"
        write_certificates(folder)
        (folder / "data").mkdir()
        names = {
            "suffix": SUFFIX,
            "root_dn": ROOT_DN,
            "root_password": ROOT_PASSWORD,
            "service_dn": SERVICE_DN,
        }
        (folder / "slapd.conf").write_text(_CONFIG.format(folder=folder, **names))

    def __enter__(self) -> Self:
        self.start()
        self._root = self._connect_as_root()
        self._add(SUFFIX, ["dcObject", "organization"], o="Example", dc="example")
        self._add(PEOPLE, "organizationalUnit", ou="people")
        self._add(GROUPS, "organizationalUnit", ou="groups")
        self._add(
            SERVICE_DN,
            ["organizationalRole", "simpleSecurityObject"],
            cn="vitrine",
            userPassword=SERVICE_PASSWORD,
        )
        return self

    def start(self) -> None:
        urls = f"ldap://127.0.0.1:{self.port}/ ldaps://127.0.0.1:{self.tls_port}/"
        command = [PROGRAM, "-d", "0", "-h", urls, "-f", str(self.folder / "slapd.conf")]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="slapd")

    def __exit__(self, *_: object) -> None:
        self._root.unbind()
        self.stop()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)

    def settings(self, **more: Any) -> DirectorySettings:
        usual: dict[str, Any] = {
            "servers": (LdapServer("127.0.0.1", self.port, False),),
            "user_base": PEOPLE,
            "bind_dn": SERVICE_DN,
            "bind_password": SERVICE_PASSWORD,
            "tls": ssl.create_default_context(cafile=str(self.ca_file)),
            "timeout_s": 2,
        }
        return DirectorySettings(**(usual | more))

    # --- entries --------------------------------------------------------------------------------

    def add_person(self, uid: str, password: str, **more: Any) -> str:
        """The DN. Without other words the address is UID@example.org; `mail=None` leaves it out."""
        usual = {"cn": uid.title(), "sn": uid.title(), "mail": f"{uid}@example.org"}
        attributes = {name: value for name, value in (usual | more).items() if value is not None}
        dn = f"uid={uid},{PEOPLE}"
        classes = ["inetOrgPerson", "extensibleObject"]
        self._add(dn, classes, uid=uid, userPassword=password, **attributes)
        return dn

    def add_group(self, name: str, *members: str, base: str = GROUPS) -> str:
        dn = f"cn={name},{base}"
        self._add(dn, "groupOfNames", cn=name, member=list(members))
        return dn

    def change(self, dn: str, **attributes: Any) -> None:
        changes = {name: [(ldap3.MODIFY_REPLACE, [value])] for name, value in attributes.items()}
        self._done(self._root.modify(dn, changes))

    def rename(self, dn: str, rdn: str) -> None:
        self._done(self._root.modify_dn(dn, rdn))

    def delete(self, dn: str) -> None:
        self._done(self._root.delete(dn))

    @contextlib.contextmanager
    def referral(self, where: str) -> Iterator[str]:
        """The DN of an entry among the people that leads elsewhere."""
        dn = f"ou=away,{PEOPLE}"
        self._add(dn, ["referral", "extensibleObject"], ou="away", ref=where)
        try:
            yield dn
        finally:
            manage_dsa_it = ("2.16.840.1.113730.3.4.2", True, None)  # RFC 3296: itself is meant
            self._done(self._root.delete(dn, controls=[manage_dsa_it]))

    def clear(self) -> None:
        """Every person and group."""
        for base in (PEOPLE, GROUPS):
            self._root.search(base, "(objectClass=*)", ldap3.LEVEL)
            for row in self._root.response:
                self.delete(row["dn"])

    def _add(self, dn: str, classes: str | list[str], **attributes: Any) -> None:
        self._done(self._root.add(dn, classes, attributes))

    def _done(self, is_done: bool) -> None:
        assert is_done, self._root.result

    def _connect_as_root(self) -> Any:
        server = ldap3.Server("127.0.0.1", self.port, get_info=ldap3.NONE)
        return ldap3.Connection(server, ROOT_DN, ROOT_PASSWORD, auto_bind=True, check_names=False)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "slapd does not start"
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        return False


def write_certificates(folder: Path) -> None:
    """A CA, and a certificate of it for 127.0.0.1."""
    authority, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = _certificate("The CA", authority.public_key(), "The CA", authority, is_ca=True)
    server = _certificate("slapd", own.public_key(), "The CA", authority)
    (folder / "ca.pem").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    (folder / "server.pem").write_bytes(server.public_bytes(serialization.Encoding.PEM))
    key = own.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    (folder / "server.key").write_bytes(key)


def _certificate(
    subject: str, key: Any, issuer: str, signer: Any, *, is_ca: bool = False
) -> x509.Certificate:
    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer))
    builder = builder.public_key(key).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(is_ca, None), critical=True)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return builder.sign(signer, hashes.SHA256())
