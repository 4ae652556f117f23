"""The requests of one model, and which of its workers each is sent to."""

from collections.abc import Iterator
from math import inf

from inference.fair_share import OUTPUT_COST
from inference.flights import Flight, Generation, Ids
from inference.prefix_index import block_hashes
from inference.priority import has_room, has_room_for_images
from inference.routing import Candidate, choose
from inference.supervisor import Supervisor

_FIRST_GUESS_TOKENS = 256.0  # of an answer's length, until some have ended


class Boarding:
    """All requests that have not been read to their end, in the order in which they came."""

    def __init__(self, workers: list[Supervisor], *, max_waiting_tokens: int) -> None:
        self.flights: dict[str, Flight] = {}
        self._workers = workers
        self._max_waiting_tokens = max_waiting_tokens
        self._usual_output = _FIRST_GUESS_TOKENS
        self._keys: dict[str, list[int]] = {}  # of the blocks of prompts, by request

    def add(self, flight: Flight) -> None:
        self.flights[flight.wire_id] = flight

    def remove(self, flight: Flight) -> None:
        del self.flights[flight.wire_id]
        self._keys.pop(flight.wire_id, None)
        for worker in self._workers:
            worker.forget(flight)

    @property
    def num_going(self) -> int:
        return sum(not flight.ended for flight in self.flights.values())

    def waiting(self) -> Iterator[Flight]:
        return (f for f in self.flights.values() if not (f.ended or f.is_on_board))

    def has_room(self, flight: Flight) -> bool:
        """Whether one that no worker takes may wait here. By the rules of a worker's own queue (see
        `WaitingQueue`), and no more than one of them holds: a model that loads has a worker first."""
        others = (f for f in self.waiting() if f is not flight)
        waiting = ((f.priority, self._num_left(f)) for f in others)
        num_tokens, most = self._num_left(flight), self._max_waiting_tokens
        images = ((f.priority, f.image_bytes) for f in self.waiting() if f is not flight)
        return flight.is_replay or (
            has_room(flight.priority, num_tokens, waiting, most)
            and has_room_for_images(flight.priority, flight.image_bytes, images)
        )

    def _num_left(self, flight: Flight) -> float:
        return sum(flight.num_left(self._usual_output))

    def board(self) -> None:
        """Send each request that waits to the best of the workers that may have it.

        Those that were on board when a worker died come one after the other, so that the one which
        kills workers is the only one that sees two die.
        """
        ready = [worker for worker in self._workers if worker.is_ready]
        waiting = list(self.waiting()) if ready else []
        if not waiting:
            return
        is_suspect_on_board = any(flight.is_suspect for flight in waiting) and any(
            flight.is_suspect and flight.is_on_board and not flight.ended
            for flight in self.flights.values()
        )
        for flight in waiting:
            if flight.is_suspect and is_suspect_on_board:
                continue
            if not (open_ := [worker for worker in ready if not worker.is_too_late(flight)]):
                continue
            is_suspect_on_board |= flight.is_suspect
            self._send(flight, open_)

    def abort(self, flight: Flight) -> None:
        for worker in self._workers:
            if flight.wire_id in worker.on_board:
                worker.abort(flight)
                return
        flight.hear_aborted()

    def landed(self, worker: Supervisor, flight: Flight) -> None:
        """A request has ended: its prompt and its answer are what the next prompt begins with."""
        if isinstance(flight, Generation):
            self._usual_output = 0.75 * self._usual_output + 0.25 * flight.num_output
            self._remember(worker, flight, flight.token_ids)

    def _remember(self, worker: Supervisor, flight: Flight, token_ids: Ids) -> None:
        """A worker has, or will have, read and cached so much for a request."""
        keys = self._keys_of(flight) if len(self._workers) > 1 else []
        if not keys:
            return
        if num_tokens := worker.stats.kv_tokens_total:
            worker.prefixes.hold(num_tokens)
        worker.prefixes.add([*keys, *block_hashes(token_ids, keys[-1], behind=len(keys))])

    def _send(self, flight: Flight, workers: list[Supervisor]) -> None:
        worker = workers[0] if len(workers) == 1 else self._best(flight, workers)
        self._remember(worker, flight, flight.prompt[-1])
        worker.take(flight)

    def _best(self, flight: Flight, workers: list[Supervisor]) -> Supervisor:
        num_unread, num_unwritten = flight.num_left(self._usual_output)
        candidates = [self._candidate(worker, flight) for worker in workers]
        return workers[choose(candidates, num_unread, num_unread + num_unwritten)]

    def _candidate(self, worker: Supervisor, flight: Flight) -> Candidate:
        stats, others, prompt = worker.stats, worker.on_board.values(), flight.prompt
        left = [other.num_left(self._usual_output) for other in others]
        # Nothing is known of a worker before its first step; its cache is empty then.
        num_free = stats.kv_tokens_total - stats.kv_tokens_used if stats.kv_tokens_total else inf
        return Candidate(
            num_cached=worker.prefixes.num_cached(self._keys_of(flight)),
            load=sum(
                num_unread + OUTPUT_COST * num_unwritten for num_unread, num_unwritten in left
            ),
            num_free=num_free,
            num_empty=num_free - stats.kv_tokens_cached,
            num_siblings=sum(other.prompt == prompt for other in others) if prompt[-1] else 0,
            is_straggling=worker.is_straggling,
        )

    def _keys_of(self, flight: Flight) -> list[int]:
        if flight.wire_id not in self._keys:
            salt, _, token_ids = flight.prompt
            self._keys[flight.wire_id] = list(block_hashes(token_ids, hash(salt)))
        return self._keys[flight.wire_id]
