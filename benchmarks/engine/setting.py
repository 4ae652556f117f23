"""How much work each scenario is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """Token counts are of one request. Ranges are drawn from evenly, ends included."""

    rounds: int = 5
    threads: int = 1
    seed: int = 1
    max_num_sequences: int = 16
    prefill_tokens: int = 512
    decode_prompt_tokens: int = 32
    decode_tokens: int = 64
    decode_streams: tuple[int, ...] = (1, 8, 16)
    mixed_requests: int = 16
    mixed_prompt_tokens: tuple[int, int] = (64, 512)
    mixed_output_tokens: tuple[int, int] = (32, 256)
    turns: int = 8
    system_tokens: int = 256
    question_tokens: int = 64
    answer_tokens: int = 64
    stall_streams: int = 4
    stall_prompt_tokens: int = 4000
    calm_tokens: int = 32  # of each stream before it is disturbed
    greedy_requests: int = 32
    fair_prompt_tokens: int = 128
    fair_output_tokens: int = 64
    equal_users: int = 4
    requests_per_equal_user: int = 8
    overload_factor: float = 10.0
    overload_s: float = 60.0
    overload_prompt_tokens: int = 64
    overload_output_tokens: int = 32
    overload_waiting_tokens: int = 8_000
    overload_kv_bytes: int = 64 * 2**20  # so few that they are full before it is measured

    @property
    def longest_tokens(self) -> int:
        """Of one sequence that a peer sees."""
        mixed = self.mixed_prompt_tokens[1] + self.mixed_output_tokens[1]
        decode = self.decode_prompt_tokens + self.decode_tokens
        return max(mixed, decode, self.prefill_tokens + 1)


QUICK = {
    "rounds": 2,
    "prefill_tokens": 128,
    "decode_prompt_tokens": 16,
    "decode_tokens": 24,
    "decode_streams": (1, 4),
    "mixed_requests": 6,
    "mixed_prompt_tokens": (16, 64),
    "mixed_output_tokens": (8, 24),
    "turns": 3,
    "system_tokens": 64,
    "question_tokens": 16,
    "answer_tokens": 16,
    "stall_prompt_tokens": 2000,
    "greedy_requests": 20,
    "fair_prompt_tokens": 32,
    "fair_output_tokens": 24,
    "requests_per_equal_user": 6,
    "overload_s": 2.0,
    "overload_waiting_tokens": 4_000,
}
"""Enough to see that every scenario works, with a tiny model."""
