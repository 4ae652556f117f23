"""Which texts a step of an encoder computes: a fair choice among requests, then sorted by length.

Knows no model and no text: only lengths in tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from inference.encode_messages import EncodeRequest
from inference.fair_share import FairShare
from inference.priority import RANK, has_room

_MAX_PADDING = 4  # of a batch's longest input at most one part in so many is padding
_FREE_PADDING_TOKENS = 16  # that much costs less than a batch of its own


@dataclass(slots=True, eq=False)
class EncoderTask:
    """A request that is being computed: its inputs from the longest to the shortest.

    `rows` are results by the index of the input.
    """

    request: EncodeRequest
    arrival: int
    waiting: list[int] = field(init=False)
    num_waiting_tokens: int = field(init=False)
    rows: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The last one is taken next.
        self.waiting = sorted(range(len(self.request.inputs)), key=self.length)
        self.num_waiting_tokens = self.request.num_tokens

    @property
    def is_done(self) -> bool:
        return len(self.rows) == len(self.request.inputs)

    def length(self, index: int) -> int:
        return len(self.request.inputs[index])

    def take(self) -> int:
        index = self.waiting.pop()
        self.num_waiting_tokens -= self.length(index)
        return index


Due = tuple[EncoderTask, int]
"""A task and the index of one of its inputs."""


class EncoderQueue:
    """All requests of one encoder, bounded in tokens."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._share = FairShare()
        self._tasks: dict[str, EncoderTask] = {}
        self._num_arrived = 0

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def num_tokens(self) -> int:
        """Tokens that are to be computed still."""
        return sum(task.num_waiting_tokens for task in self._tasks.values())

    def add(self, request: EncodeRequest) -> bool:
        """False: no room, as `priority.has_room` says. One that was accepted before always has."""
        waiting = (
            (task.request.caller.priority, task.num_waiting_tokens) for task in self._tasks.values()
        )
        is_taken = has_room(request.caller.priority, request.num_tokens, waiting, self._max_tokens)
        if not (is_taken or request.is_replay):
            return False
        assert request.request_id not in self._tasks
        self._num_arrived += 1
        self._tasks[request.request_id] = EncoderTask(request, self._num_arrived)
        self._share.arrive(request.caller.user)
        return True

    def remove(self, request_id: str) -> EncoderTask | None:
        task = self._tasks.pop(request_id, None)
        if task is not None:
            self._share.leave(task.request.caller.user)
        return task

    def has(self, task: EncoderTask) -> bool:
        return self._tasks.get(task.request.request_id) is task

    @property
    def has_urgent(self) -> bool:
        """Whether something waits that is no chore."""
        return not all(task.request.is_chore for task in self._waiting())

    def take(self, budget_tokens: int, chore_tokens: int | None = None) -> list[Due]:
        """The inputs of the next step: at least one, and as many as the budget allows, which is another
        one for chores (the background class): whoever comes waits for the end of a step.

        Those of the highest class only: nobody's query waits until a chore's part of its step is
        done. Within the class whoever has had the fewest tokens for their weight, and among equals
        the request that will be done first.
        """
        due: list[Due] = []
        rank = None
        while task := min(self._waiting(), key=self._turn, default=None):
            num_tokens = task.length(task.waiting[-1])
            own_rank = RANK[task.request.caller.priority]
            if due and (num_tokens > budget_tokens or own_rank != rank):
                break
            if not due and task.request.is_chore and chore_tokens is not None:
                budget_tokens = chore_tokens
            rank = own_rank
            budget_tokens -= num_tokens
            caller = task.request.caller
            self._share.charge(caller.user, num_tokens, caller.weight)
            due.append((task, task.take()))
        return due

    def _waiting(self) -> Iterator[EncoderTask]:
        return (task for task in self._tasks.values() if task.waiting)

    def _turn(self, task: EncoderTask) -> tuple[int, float, int, int]:
        caller = task.request.caller
        rank, had = RANK[caller.priority], self._share.of(caller.user)
        return rank, had, task.num_waiting_tokens, task.arrival


def by_adapter(due: list[Due]) -> list[list[Due]]:
    """What goes through the same adapter, or through none, together: a forward is for one of them."""
    found: dict[str, list[Due]] = {}
    for task, index in due:
        found.setdefault(task.request.adapter, []).append((task, index))
    return list(found.values())


def batches_by_length(due: list[Due], packed_tokens: int = 0) -> Iterator[list[Due]]:
    """Inputs of about the same length together, the longest first: what is padded is wasted. Those of up
    to `packed_tokens` are not padded, and go together."""
    batch: list[Due] = []
    longest = 0
    for task, index in sorted(due, key=lambda each: each[0].length(each[1]), reverse=True):
        length = task.length(index)
        is_packed = length <= packed_tokens
        is_far = longest - length > max(_FREE_PADDING_TOKENS, longest // _MAX_PADDING)
        if batch and (longest > packed_tokens if is_packed else is_far):
            yield batch
            batch = []
        if not batch:
            longest = length
        batch.append((task, index))
    if batch:
        yield batch
