"""What goes wrong with documents and collections, as one tree. The texts are for people.

RetrievalError
├── NotFound        no such row, or one that may not be read: the same answer
├── NotAllowed      it may be read, and not changed
├── BadValue        a request whose values make no sense
├── Conflict        it is there already, or not in the right state
├── TooMany         as many as one person may keep
└── NoRoom          the documents together would be too large
"""

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

_NOUNS = {
    "access": _("access"),
    "collection": _("collection"),
    "document": _("document"),
    "group": _("group"),
    "person": _("person"),
    "version": _("version"),
}


class RetrievalError(Exception):
    """`code` is stable and goes to clients; `param` is the field that is wrong."""

    code = "retrieval_error"
    status = 400
    retry_after_s: float | None = None

    def __init__(self, text: str, param: str | None = None) -> None:
        super().__init__(text)
        self.param = param


class NotFound(RetrievalError):
    code = "not_found"
    status = 404

    def __init__(self, what: str) -> None:
        noun = _NOUNS.get(what, what)
        super().__init__(gettext("There is no such %(what)s.") % {"what": noun})


class NotAllowed(RetrievalError):
    code = "not_allowed"
    status = 403


class BadValue(RetrievalError):
    code = "invalid_value"


class Conflict(RetrievalError):
    code = "conflict"
    status = 409


class TooMany(RetrievalError):
    code = "too_many"

    def __init__(self, limit: int) -> None:
        text = gettext("There are %(n)s already; delete one first.")
        super().__init__(text % {"n": f"{limit:,}"})


class NoRoom(RetrievalError):
    code = "storage_quota_exceeded"
    status = 413

    def __init__(self, limit_bytes: int) -> None:
        text = gettext("Documents of one person may take %(n)s MiB together; delete some first.")
        super().__init__(text % {"n": f"{limit_bytes // 2**20:,}"})
