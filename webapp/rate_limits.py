"""How often somebody may try at the doors that take a password or a token.

Counted in Redis, so that all processes count together; while it is away each process counts for itself.
The address is REMOTE_ADDR, which webapp/proxies.py corrects for trusted proxies only; IPv6 counts by
/64. No door counts by e-mail alone: that would let anybody lock out anybody. A school class behind one
address may come at once.
"""

from collections.abc import Callable
from functools import wraps
from math import ceil
from threading import Lock
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import ngettext
from django_ratelimit import ALL
from django_ratelimit.core import _get_ip, _split_rate, get_usage
from redis.exceptions import RedisError

from chat.windows import LocalWindows, Window
from webapp.cache import AWAY_S
from webapp.error_pages import error_page
from webapp.security_events import Kind, note_event

View = Callable[..., HttpResponseBase]


def _network(group: str, request: HttpRequest) -> str:
    """The address, of IPv6 its /64: within that, a visitor has as many as they like."""
    return str(_get_ip(request))


def _address_and_login(group: str, request: HttpRequest) -> str:
    return f"{_network(group, request)} {_login(request).strip().lower()}"


def _login(request: HttpRequest) -> str:
    attempted = getattr(request, "attempted_login", None)  # of a body that is no form
    return str(request.POST.get("login", "") if attempted is None else attempted)


def _who_signs_in(group: str, request: HttpRequest) -> str:
    """Whoever has given the password and now owes the second step, or is signed in.

    This may count by the account alone: only who knows its password can use it up.
    """
    pending = request.session.get("account_login")
    pending_user = pending.get("user_pk") if isinstance(pending, dict) else None
    return f"{pending_user} {request.user.pk}"


def _mailbox(group: str, request: HttpRequest) -> str:
    return request.POST.get("email", "").strip().lower()


def _user(group: str, request: HttpRequest) -> str:
    return str(request.user.pk)


Key = str | Callable[[str, HttpRequest], str]
LIMITS: dict[str, list[tuple[Key, str]]] = {
    "login": [("ip", "120/m"), (_address_and_login, "10/5m")],
    "password_change": [("user", "10/5m")],
    "signup": [("ip", "120/10m")],
    "password_reset": [("ip", "120/10m")],
    "letters_of_reset": [(_mailbox, "5/h")],  # more are not sent, and those that were still open
    "reauthenticate": [("user", "10/5m")],
    "second_step": [("ip", "120/m"), (_who_signs_in, "10/10m"), (_who_signs_in, "50/d")],
    "passkey": [("ip", "120/m")],
    "refresh": [("ip", "120/m")],
    "provider": [("ip", "120/m")],
    "delete_account": [("user", "10/5m")],
    "email": [("user", "10/h")],
    "suspended": [("ip", "30/10m")],
    "setup": [("ip", "60/m")],
    "scim": [("ip", "30/m")],
}
"""Door -> what is counted and how often it may happen."""


def limited(door: str) -> Callable[[View], View]:
    """Refuse with 429 and Retry-After when a POST is one too many; with 503 where behind the door Redis
    is needed, as for a code that must work only once, and is away."""

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            wait_s = seconds_to_wait(request, door)
            if wait_s is not None:
                return _refuse(request, wait_s)
            try:
                return view(request, *args, **kwargs)
            except RedisError:
                response = error_page(request, 503)
                response["Retry-After"] = str(ceil(AWAY_S))
                return response

        return wrapped

    return decorate


def seconds_to_wait(request: HttpRequest, door: str, *, method: Any = "POST") -> int | None:
    """None when the request may pass. Counts all of this method (django_ratelimit's ALL: of any)."""
    waits = []
    for key, rate in LIMITS[door]:
        try:
            usage = get_usage(
                request, group=f"door:{door}", key=key, rate=rate, method=method, increment=True
            )
        except RedisError:
            waits += _wait_by_this_process(request, door, key, rate, method)
            continue
        if usage and usage["should_limit"]:
            waits.append(max(1, usage["time_left"]))
    if waits:
        note_event(Kind.REFUSED, how=f"at the door {door}", login=_login(request), request=request)
    return max(waits, default=None)


_local = LocalWindows()
_local_lock = Lock()  # doors are passed in threads


def _wait_by_this_process(
    request: HttpRequest, door: str, key: Key, rate: str, method: Any
) -> list[int]:
    """As get_usage counts, for as long as there is no Redis to count in."""
    if method != ALL and request.method != method:
        return []
    of = {"ip": _network, "user": _user}.get(key, key) if isinstance(key, str) else key
    assert callable(of)
    limit, period_s = _split_rate(rate)
    window = Window(f"{door} {rate} {of(door, request)}", limit, period_s)
    with _local_lock:
        admission = _local.admit([window])
    return [] if admission.is_admitted else [max(1, ceil(admission.wait_s))]


def _refuse(request: HttpRequest, wait_s: int) -> HttpResponse:
    words = ngettext(
        "Too many attempts. Please try again in %(n)s second.",
        "Too many attempts. Please try again in %(n)s seconds.",
        wait_s,
    )
    response = error_page(request, 429, words % {"n": wait_s})
    response["Retry-After"] = str(wait_s)
    return response
