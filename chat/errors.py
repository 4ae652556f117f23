"""What goes wrong in chat, as one tree. Engine errors pass through as they are.

ChatError
├── NotFound            no such row, or somebody else's: the same answer
├── Conflict            somebody else was faster
│   └── StillWriting    the answer has to end first
├── BadRequest          a request whose values make no sense
├── TooLarge            an upload beyond what the operator allows
├── NameTaken           there is one of this name already
├── NotAllowed          for operators only
├── TooMany             as many as one user may keep
├── BadFrame            a socket frame that is not understood
├── BadCursor           a place in a list that is none
├── BadChange           a change that a chat or folder cannot take
├── SearchTooSlow       a search that took too long
├── SignedOut           the session or the account has ended since
├── TooManyRuns         the tier's concurrent answers are used up
├── TooManyRequests     more within a minute than the tier or the key allows
├── BudgetSpent         the tokens or the money of a day or month are used up
└── ShuttingDown        no new answers while the server drains
"""

from math import ceil

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chat.windows import Admission

_NOUNS = {
    "answer": _("answer"),
    "assistant": _("assistant"),
    "conversation": _("conversation"),
    "folder": _("folder"),
    "key": _("key"),
    "link": _("link"),
    "memory": _("memory"),
    "message": _("message"),
    "prompt": _("prompt"),
    "run": _("run"),
    "schedule": _("schedule"),
    "summary": _("summary"),
}


class ChatError(Exception):
    """`code` is stable and goes to clients; the text is for people."""

    code = "chat_error"
    status = 400
    retry_after_s: float | None = None


class NotFound(ChatError):
    code = "not_found"
    status = 404

    def __init__(self, what: str = "conversation") -> None:
        noun = _NOUNS.get(what, what)
        super().__init__(gettext("There is no such %(what)s.") % {"what": noun})


class Conflict(ChatError):
    code = "conflict"
    status = 409


class StillWriting(Conflict):
    def __init__(self) -> None:
        text = gettext("The answer is still being written. Stop it, or wait for its end.")
        super().__init__(text)


class BadRequest(ChatError):
    code = "invalid_value"


class TooLarge(ChatError):
    code = "too_large"
    status = 413


class NameTaken(ChatError):
    code = "name_taken"
    status = 409

    def __init__(self, name: str) -> None:
        text = gettext("There is a prompt with the name “%(name)s” already.")
        super().__init__(text % {"name": name})


class NotAllowed(ChatError):
    code = "not_allowed"
    status = 403


class TooMany(ChatError):
    code = "too_many"

    def __init__(self, limit: int) -> None:
        text = gettext("There are %(n)s already; delete one first.")
        super().__init__(text % {"n": limit})


class BadFrame(ChatError):
    code = "bad_frame"


class BadCursor(ChatError):
    code = "bad_cursor"

    def __init__(self) -> None:
        super().__init__("The cursor is none that a list has given.")


class BadChange(ChatError):
    code = "bad_change"


class SearchTooSlow(ChatError):
    code = "search_too_slow"
    status = 503
    retry_after_s = 2.0

    def __init__(self) -> None:
        super().__init__(gettext("The search took too long. Try rarer words, or a filter."))


class SignedOut(ChatError):
    code = "signed_out"
    status = 401

    def __init__(self) -> None:
        super().__init__(gettext("You are no longer signed in."))


class TooManyRuns(ChatError):
    code = "too_many_runs"
    status = 429
    retry_after_s = 5.0

    def __init__(self, limit: int) -> None:
        text = gettext(
            "Your plan writes %(n)s answers at the same time. Wait for one to end, or stop it."
        )
        super().__init__(text % {"n": limit})


class TooManyRequests(ChatError):
    code = "rate_limit_exceeded"
    status = 429

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.retry_after_s = max(1.0, ceil(admission.wait_s))
        limits = [count.window.limit for count in admission.counts if count.wait_s]
        text = gettext("At most %(n)s requests a minute. Please try again in %(wait)s s.")
        wait_s = round(self.retry_after_s)
        super().__init__(text % {"n": min(limits, default=0), "wait": wait_s})


class BudgetSpent(ChatError):
    code = "insufficient_quota"
    status = 429

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class BeyondBudget(BudgetSpent):
    """It would not fit into a budget of which nothing is spent: to ask again is of no use."""

    status = 400


class ShuttingDown(ChatError):
    code = "shutting_down"
    status = 503
    retry_after_s = 5.0

    def __init__(self) -> None:
        super().__init__(
            gettext("The server is restarting. Your message is kept; try again in a moment.")
        )
