"""What goes wrong in chat, as one tree. Engine errors pass through as they are.

ChatError
├── NotFound            no such row, or somebody else's: the same answer
├── Conflict            somebody else was faster
├── BadFrame            a socket frame that is not understood
├── BadCursor           a place in a list that is none
├── SignedOut           the session or the account has ended since
├── TooManyRuns         the tier's concurrent answers are used up
└── ShuttingDown        no new answers while the server drains
"""


class ChatError(Exception):
    """`code` is stable and goes to clients; the text is for people."""

    code = "chat_error"
    status = 400
    retry_after_s: float | None = None


class NotFound(ChatError):
    code = "not_found"
    status = 404

    def __init__(self, what: str = "conversation") -> None:
        super().__init__(f"There is no such {what}.")


class Conflict(ChatError):
    code = "conflict"
    status = 409


class BadFrame(ChatError):
    code = "bad_frame"


class BadCursor(ChatError):
    code = "bad_cursor"

    def __init__(self) -> None:
        super().__init__("The cursor is none that a list has given.")


class SignedOut(ChatError):
    code = "signed_out"
    status = 401

    def __init__(self) -> None:
        super().__init__("You are no longer signed in.")


class TooManyRuns(ChatError):
    code = "too_many_runs"
    status = 429
    retry_after_s = 5.0

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"Your plan writes {limit} answers at the same time. Wait for one to end, or stop it."
        )


class ShuttingDown(ChatError):
    code = "shutting_down"
    status = 503
    retry_after_s = 5.0

    def __init__(self) -> None:
        super().__init__("The server is restarting. Your message is kept; try again in a moment.")
