"""May this be asked now? Requests for answers, counted by user and by key."""

from chat.errors import TooManyRequests
from chat.rights import Rights
from chat.windows import Admission, Count, admit


async def check_requests(rights: Rights, num_answers: int = 1) -> Admission:
    """Count so many answers asked for. Raises TooManyRequests; then nothing was counted."""
    admission = await admit(rights.windows(), num_answers)
    if not admission.is_admitted:
        raise TooManyRequests(admission)
    return admission


def headers_of(admission: Admission) -> dict[str, str]:
    """In OpenAI's words, of the window that has the least left."""
    count = admission.tightest
    if count is None:
        return {}
    return {
        "x-ratelimit-limit-requests": str(count.window.limit),
        "x-ratelimit-remaining-requests": str(count.remaining),
        "x-ratelimit-reset-requests": _duration(count),
    }


def _duration(count: Count) -> str:
    """As OpenAI writes it: "830ms", "4.2s" or "6m12s"."""
    if count.reset_s < 1:
        return f"{round(count.reset_s * 1000)}ms"
    minutes, seconds = divmod(count.reset_s, 60)
    return f"{int(minutes)}m{round(seconds)}s" if minutes else f"{seconds:.3g}s"
