"""The prompt of an answer as named segments, and what is left out where they are too long. Pure.

Order is what keeps a chat warm: system prompt, memory, history, the new question. Nothing that
changes from turn to turn stands before anything that does not, so each prompt begins with the one
before, to the token. Where the history is too long, half of the room is freed in one step: the cache
loses everything behind a cut, and after a big one it is many turns to the next.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar
from uuid import UUID

from chat.document_prompt import text_of_rows
from chat.events import LeftOut
from chat.json_texts import message_with_texts
from chat.prompt import system_message
from inference import IMAGE_PLACE, ChatMessage, ContextTooLong, Image, may_fit, newest_that_fit

SegmentName = Literal["system", "memory", "history", "documents", "draft"]
Strategy = Literal["window", "summary", "selective"]
STRATEGIES: tuple[Strategy, ...] = ("window", "summary", "selective")
SUMMARY_HEAD = "Summary of the conversation so far:"
_KEPT_SHARE = 2  # a cut leaves half of the room filled
_USUAL_BYTES_PER_TOKEN = 4
_NOBODYS_TEXT = "\u2063"  # where a measured segment ends: no text begins with it

Ids = TypeVar("Ids", bound=Sequence[int])
Encode = Callable[[list[ChatMessage]], Ids]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and what answered it; it is shown as a whole or not at all.

    `id` is that of its first message. `documents` were found for the question, and stand in front of
    it in this prompt and in all later ones; `passages` are what they are made of. `unjudged` is what
    of `reply` no model has written here: a person has, or it was brought from elsewhere. `is_brought`:
    so was some of the exchange, and it may be others' words. `num_messages` counts rows. `questions` are
    those that the question was joined of, where it is several. `attached` are documents that were picked
    for it, and `images` those of them that the model sees.
    """

    id: str
    question: str
    reply: tuple[ChatMessage, ...] = ()
    documents: str = ""
    passages: tuple[str, ...] = ()
    num_messages: int = 1
    is_pinned: bool = False
    unjudged: tuple[ChatMessage, ...] = ()
    is_brought: bool = False
    questions: tuple[str, ...] = ()
    attached: tuple[UUID, ...] = ()
    images: tuple[Image, ...] = ()

    def answered_from(self, passages: tuple[str, ...]) -> "Exchange":
        return replace(self, documents=text_of_rows(passages), passages=passages)

    def messages(self, before: str = "") -> list[ChatMessage]:
        texts = (before, self.documents, self.question)
        content = "\n\n".join(text for text in texts if text)
        asked: ChatMessage = {"role": "user", "content": content}
        if self.images:
            # A mark that somebody has written is no place of one of them: they stand in front.
            asked = {**asked, "content": content.replace(IMAGE_PLACE, ""), "images": self.images}
        return [asked, *self.reply]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model wrote about all exchanges before the one that is named `until`."""

    id: str
    text: str
    until: str


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """What there is to show, and from where on it is shown.

    The last exchange holds the question to answer. Exchanges before number `start` are left out but
    for those that are kept: pinned ones and, with `keeps_first`, the first. `summary` stands in for
    what is left out; of the `summaries` that there are the newest will, once something has to go.
    `has_documents`: what was found for the question is in its place already. `num_asked` of the last
    exchanges are asked now: with a wish, the one that it is about as well. `stopped` are others that
    were taken out since a policy stops them. `is_system_brought`: others than the chat's user have
    written some of `system`, or may have.
    """

    exchanges: tuple[Exchange, ...]
    system: str = ""
    memory: str = ""
    keeps_first: bool = False
    start: int = 0
    summary: Summary | None = None
    summaries: tuple[Summary, ...] = ()
    has_documents: bool = False
    num_asked: int = 1
    stopped: tuple[str, ...] = ()
    is_system_brought: bool = False

    @property
    def earlier(self) -> tuple[Exchange, ...]:
        return self.exchanges[: -self.num_asked]

    @property
    def asked(self) -> tuple[Exchange, ...]:
        return self.exchanges[-self.num_asked :]

    def messages(self) -> list[ChatMessage]:
        """The whole prompt, the system message first."""
        return [*self._head(), *self._history(), *self._newest()]

    def _head(self) -> list[ChatMessage]:
        return [system_message(self.system, self.memory)]

    def _history(self) -> list[ChatMessage]:
        kept = [exchange for _, exchange in self._kept()]
        shown: list[ChatMessage] = [m for exchange in kept for m in exchange.messages()]
        for number, exchange in enumerate(self.exchanges[self.start : -1]):
            shown += exchange.messages("" if number else self._summary_text())
        return shown

    def _newest(self) -> list[ChatMessage]:
        if not self.exchanges:
            return []
        is_first = self.start == len(self.exchanges) - 1
        return self.exchanges[-1].messages(self._summary_text() if is_first else "")

    def _summary_text(self) -> str:
        """As a person's words, not the system's: it is made of what people have said."""
        return f"{SUMMARY_HEAD}\n{self.summary.text}" if self.summary else ""

    @property
    def shown(self) -> tuple[Exchange, ...]:
        return (*(exchange for _, exchange in self._kept()), *self.exchanges[self.start :])

    def _kept(self) -> Iterator[tuple[int, Exchange]]:
        for number, exchange in enumerate(self.exchanges[: self.start]):
            if exchange.is_pinned or (self.keeps_first and number == 0):
                yield number, exchange

    # --- what is left out -----------------------------------------------------------------------

    @property
    def left_out(self) -> LeftOut | None:
        """What the model is not shown; None while it sees everything."""
        if self.start == 0 and not self.stopped:
            return None
        kept = {number for number, _ in self._kept()}
        gone = [e for number, e in enumerate(self.exchanges[: self.start]) if number not in kept]
        return LeftOut(
            before=self.exchanges[self.start].id,
            num_messages=sum(exchange.num_messages for exchange in gone),
            summary=self.summary.id if self.summary else None,
            stopped=self.stopped,
        )

    def without(self, ids: Collection[str]) -> "PromptPlan":
        """The plan without these earlier exchanges and summaries. What begins at one of them begins at
        the next that stays."""
        following: dict[str, str] = {}
        next_id = ""
        for one in reversed(self.exchanges):
            next_id = next_id if one.id in ids else one.id
            following[one.id] = next_id
        summaries = tuple(
            replace(one, until=following.get(one.until, one.until))
            for one in self.summaries
            if one.id not in ids
        )
        shown = self.summary  # of one that is being written there is no row
        if shown is not None:
            begins = replace(shown, until=following.get(shown.until, shown.until))
            shown = None if shown.id in ids else begins
        return replace(
            self,
            exchanges=tuple(one for one in self.exchanges if one.id not in ids),
            start=self.start - sum(one.id in ids for one in self.exchanges[: self.start]),
            summary=shown,
            summaries=summaries,
            stopped=(*self.stopped, *(one.id for one in self.exchanges if one.id in ids)),
        )

    def showing(self, left_out: LeftOut) -> "PromptPlan":
        """The plan with as much left out as an earlier prompt had; all is shown where that was not of
        this branch, or nothing was too old to be shown: what a policy had stopped is not hidden longer
        than it says."""
        start = self.index_of(left_out.before)
        if start is None:
            return self
        summary = next((s for s in self.summaries if s.id == left_out.summary), None)
        if not left_out.num_messages and summary is None:
            start = 0
        return replace(self, start=start, summary=summary)

    def with_documents(self, passages: tuple[str, ...]) -> "PromptPlan":
        """The plan with what was found for the question."""
        *earlier, asked = self.exchanges
        exchanges = (*earlier, asked.answered_from(passages))
        return replace(self, exchanges=exchanges, has_documents=True)

    def with_passages(self, changed: Mapping[str, str]) -> "PromptPlan":
        """The plan with other passages in the place of some that were found."""
        exchanges = (
            one.answered_from(tuple(changed.get(row, row) for row in one.passages))
            if not changed.keys().isdisjoint(one.passages)
            else one
            for one in self.exchanges
        )
        return replace(self, exchanges=tuple(exchanges))

    def with_images(self, images: Mapping[UUID, Image]) -> "PromptPlan":
        """The plan with what there is to be seen of what was attached to its questions."""
        exchanges = (
            replace(one, images=tuple(images[id_] for id_ in one.attached if id_ in images))
            if one.attached
            else one
            for one in self.exchanges
        )
        return replace(self, exchanges=tuple(exchanges))

    def with_documents_as(self, changed: Callable[[str], str]) -> "PromptPlan":
        """The plan with all that was found for its questions as `changed` gives it back."""
        exchanges = (replace(one, documents=changed(one.documents)) for one in self.exchanges)
        return replace(self, exchanges=tuple(exchanges))

    def with_texts(self, changed: Callable[[str], str]) -> "PromptPlan":
        """The plan with all that is said in it as `changed` gives it back; documents are not."""
        exchanges = tuple(
            replace(
                one,
                question=changed(one.question),
                reply=tuple(message_with_texts(said, changed) for said in one.reply),
            )
            for one in self.exchanges
        )
        told = {one.id: replace(one, text=changed(one.text)) for one in self.summaries}
        return replace(
            self,
            exchanges=exchanges,
            system=changed(self.system),
            memory=changed(self.memory),
            summaries=tuple(told.values()),
            summary=told[self.summary.id] if self.summary else None,
        )

    def index_of(self, exchange_id: str) -> int | None:
        """Which exchange it is; None: none of these."""
        for number, exchange in enumerate(self.exchanges):
            if exchange.id == exchange_id:
                return number
        return None

    def newest(self, num_exchanges: int) -> "PromptPlan":
        """The plan with only so many of the newest exchanges, and those that are kept."""
        return replace(self, start=max(self.start, len(self.exchanges) - num_exchanges))

    def without_older_half(self) -> "PromptPlan | None":
        """Half as many exchanges; None when only the question is left."""
        num_shown = len(self.exchanges) - self.start
        if num_shown > 1:
            return self.newest(num_shown // 2)
        return self._without_kept() if any(self._kept()) else None

    def _without_kept(self) -> "PromptPlan":
        plain = (replace(exchange, is_pinned=False) for exchange in self.exchanges)
        return replace(self, exchanges=tuple(plain), keeps_first=False)

    def summarised(self) -> "PromptPlan | None":
        """The plan with the newest summary in place of all that it tells of; None: it has it."""
        newest = max(self.summaries, key=self._num_told, default=None)
        if newest is None or newest == self.summary or self._num_told(newest) < self.start:
            return None
        return replace(self, start=self._num_told(newest), summary=newest)

    def _num_told(self, summary: Summary | None) -> int:
        """Of how many exchanges it tells; 0 where it is of another branch."""
        return (self.index_of(summary.until) or 0) if summary else 0

    @property
    def has_gap(self) -> bool:
        """Whether exchanges are left out of which no summary in the prompt tells."""
        return self.start > self._num_told(self.summary)


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens of context, and how many of them a prompt may fill; the rest is kept for the answer."""

    context_tokens: int
    prompt_tokens: int

    @property
    def reserve_tokens(self) -> int:
        return self.context_tokens - self.prompt_tokens


def fit(plan: PromptPlan, encode: Encode[Ids], limits: Limits) -> tuple[PromptPlan, Ids]:
    """The plan with as much left out as has to be, and its ids.

    Raises ContextTooLong when the system prompt and the question alone do not fit.
    """
    room = limits.prompt_tokens
    if (whole := _whole(plan, encode, room // _KEPT_SHARE)) is not None:
        return whole
    summarised = plan.summarised()
    # A summary that fills a gap is worth reading the prompt anew; another one waits for its turn.
    choices = [summarised, plan] if plan.has_gap else [plan, summarised]
    for choice in choices:
        if choice and may_fit(messages := choice.messages(), room):
            ids = encode(messages)
            if len(ids) <= room:
                return choice, ids
    most = summarised or plan
    least = replace(most._without_kept(), summary=None)
    for choice in (most, least):
        for budget in (room // _KEPT_SHARE, room):
            if (cut := _cut(choice, encode, budget)) is not None:
                return cut
    raise ContextTooLong(
        num_prompt_tokens=len(encode(least.newest(1).messages())),
        max_context_tokens=limits.context_tokens,
        num_reserved=limits.reserve_tokens,
    )


def _whole(plan: PromptPlan, encode: Encode[Ids], budget: int) -> tuple[PromptPlan, Ids] | None:
    """All of a plan that was cut, where it takes no more than a cut leaves: it was cut for less room, as
    that of another tier. None: it stays as it is.

    What is most likely longer is not encoded to know it.
    """
    if not plan.start:
        return None
    whole = replace(plan, start=0, summary=None)
    messages = whole.messages()
    if (
        sum(len(message["content"].encode(errors="replace")) for message in messages)
        > budget * _USUAL_BYTES_PER_TOKEN
    ):
        return None
    ids = encode(messages)
    return (whole, ids) if len(ids) <= budget else None


def _cut(plan: PromptPlan, encode: Encode[Ids], budget: int) -> tuple[PromptPlan, Ids] | None:
    """With as many of the newest exchanges as the budget holds; None: not even the last."""

    def newest(num_exchanges: int) -> list[ChatMessage]:
        return plan.newest(num_exchanges).messages()

    num_shown = len(plan.exchanges) - plan.start
    found = newest_that_fit(newest, num_shown, encode, budget)
    return (plan.newest(found[0]), found[1]) if found else None


def measure(plan: PromptPlan, encode: Encode[Ids], ids: Ids) -> dict[SegmentName, int]:
    """How many of a prompt's `ids` each segment takes; they add up to all of them.

    A segment ends where the prompt is no longer like one that ends there. The marks of a turn count
    with what stands before them, the schemas of tools with the system prompt.
    """
    nobody = [{"role": "user", "content": _NOBODYS_TEXT}]
    head = encode([*plan._head(), *nobody])
    without_memory = encode([system_message(plan.system), *nobody]) if plan.memory else head
    memory = len(head) - len(without_memory)  # templates put tools behind it: it is no prefix
    ends = [_num_alike(head, ids)]
    for messages in ([*plan._head(), *plan._history(), *nobody], _up_to_question(plan)):
        ends.append(max(ends[-1], _num_alike(encode(messages), ids)))
    return {
        "system": ends[0] - memory,
        "memory": memory,
        "history": ends[1] - ends[0],
        "documents": ends[2] - ends[1],
        "draft": len(ids) - ends[2],
    }


def _up_to_question(plan: PromptPlan) -> list[ChatMessage]:
    asked = replace(plan.exchanges[-1], question=_NOBODYS_TEXT, reply=(), images=())
    return replace(plan, exchanges=(*plan.exchanges[:-1], asked)).messages()


def _num_alike(some: Sequence[int], others: Sequence[int]) -> int:
    for number, (one, other) in enumerate(zip(some, others, strict=False)):
        if one != other:
            return number
    return min(len(some), len(others))
