"""Who may make an account, as VITRINE_SIGNUP or the console says it. Knows no database."""

import re
from dataclasses import dataclass
from typing import Literal

from django.core.exceptions import ImproperlyConfigured

Mode = Literal["open", "domain", "invitation", "closed"]
_MODES: dict[str, Mode] = {"open": "open", "invitation": "invitation", "closed": "closed"}
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]{2,}")


@dataclass(frozen=True, slots=True)
class SignupPolicy:
    """`domains` are those of the mode "domain", whose sub-domains are not meant."""

    mode: Mode = "open"
    domains: tuple[str, ...] = ()

    @property
    def takes_invitations(self) -> bool:
        return self.mode != "closed"

    def admits(self, email: str) -> bool:
        """Whether who has this address may come in without an invitation."""
        if self.mode == "domain":
            return email.rpartition("@")[2].lower() in self.domains
        return self.mode == "open"

    def check(self, *, has_mail: bool, has_providers: bool) -> None:
        """Raises ValueError, in words, where this site cannot hold to it."""
        if self.mode == "domain" and not has_mail and not has_providers:
            raise ValueError(
                "Domains need SMTP_HOST or a sign-in provider: an address that nobody confirms"
                " proves nothing."
            )


def policy_of_domains(listed: str) -> SignupPolicy:
    """Of domains between commas. Raises ValueError, in words."""
    domains = tuple(part.strip().lower() for part in listed.split(",") if part.strip())
    wrong = [domain for domain in domains if not _DOMAIN.fullmatch(domain)]
    if not domains or wrong:
        raise ValueError(
            "Domains are written as in example.org,example.com, not"
            f" {', '.join(wrong) or 'left out'}."
        )
    return SignupPolicy("domain", domains)


def signup_policy(value: str, *, has_mail: bool = True, has_providers: bool = True) -> SignupPolicy:
    """Of `open`, `invitation`, `closed` or `domain:example.org,example.com`."""
    mode, colon, listed = value.partition(":")
    try:
        if mode == "domain":
            policy = policy_of_domains(listed)
            policy.check(has_mail=has_mail, has_providers=has_providers)
            return policy
    except ValueError as error:
        raise ImproperlyConfigured(f"VITRINE_SIGNUP={value}: {error}") from None
    if mode not in _MODES or colon:
        raise ImproperlyConfigured(
            f"VITRINE_SIGNUP must be {', '.join(_MODES)} or domain:…, not {value!r}."
        )
    return SignupPolicy(_MODES[mode])
