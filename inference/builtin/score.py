"""Exact scores on held-out items at temperature 0. Run by `python -m inference.builtin score`.

An item is right when every marked turn is: the answer equals the expected text (or one of the few
equally right ones), a tool call parses to the same name and arguments, and the turn ends. Earlier
turns are given as they should be. Decoding is transformers' plain forward over padded batches.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedModel

from inference.builtin import by_hand
from inference.builtin.dialog import Dialog, Message
from inference.builtin.mixture import BY_NAME, SKILLS, score_items
from inference.builtin.template import END_OF_TEXT, IM_END, prompt_text
from inference.loader import best_dtype

SEED = 2026
BY_HAND = "by hand"
MAX_NEW_TOKENS = 320
_CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote; `has_ended` is False when it ran into the limit."""

    text: str
    has_ended: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """One checked turn: its prompt, what was expected, what came."""

    prompt: str
    expected: Message
    answer: Answer

    @property
    def is_right(self) -> bool:
        return self.answer.has_ended and is_right(self.expected, self.answer.text)


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of one skill. `num_ended` counts turns that ended by themselves."""

    skill: str
    goal: float
    num_items: int
    num_right: int
    num_turns: int
    num_ended: int
    wrong: tuple[Turn, ...]

    @property
    def share(self) -> float:
        return self.num_right / self.num_items


def is_right(expected: Message, text: str) -> bool:
    """Whether an answer is the expected one."""
    if expected.call is None:
        return text.strip() in (expected.content, *expected.also)
    found = _CALL.fullmatch(text.strip())
    if not found:
        return False
    try:
        call = json.loads(found[1])
    except ValueError:
        return False
    wanted = {"name": expected.call.name, "arguments": dict(expected.call.arguments)}
    return bool(call == wanted)


class Decoder:
    """Greedy decoding of many prompts with one model."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder, dtype=best_dtype(), local_files_only=True
        )
        self.model.train(False)
        self.end = self.tokenizer.token_to_id(IM_END)
        self.pad = self.tokenizer.token_to_id(END_OF_TEXT)

    def answers(
        self, prompts: Sequence[str], guesses: Sequence[str] = (), batch_size: int = 16
    ) -> list[Answer]:
        """One answer per prompt, in order; prompts of like length share a batch.

        Where a guess is what the model writes, it is read behind its prompt, which takes one step and
        not one for each token. Other answers are written as without a guess.
        """
        ids = self._ids(prompts)
        guessed = self._right(ids, self._ids(guesses)) if guesses else set()
        made = {number: Answer(guesses[number], has_ended=True) for number in guessed}
        order = sorted(set(range(len(ids))) - guessed, key=lambda number: len(ids[number]))
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            made |= dict(zip(chosen, self._batch([ids[n] for n in chosen]), strict=True))
        return [made[number] for number in range(len(ids))]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]

    @torch.inference_mode()
    def _right(self, prompts: list[list[int]], guesses: list[list[int]]) -> set[int]:
        """The numbers of the guesses that the model writes, and ends.

        A prompt that the next one goes on from, guess and all, is read with that one.
        """
        right: set[int] = set()
        together: list[int] = []
        for number, following in enumerate([*prompts[1:], []]):
            together.append(number)
            whole = [*prompts[number], *guesses[number], self.end]
            if following[: len(whole)] == whole:
                continue
            first = len(prompts[together[0]]) - 1
            ids = torch.tensor([whole[:-1]])
            output = self.model(
                input_ids=ids, use_cache=False, logits_to_keep=len(whole) - 1 - first
            )
            chosen = output.logits[0].argmax(-1).tolist()  # of what is behind each from `first` on
            for each in together:
                expected = [*guesses[each], self.end]
                start = len(prompts[each]) - 1 - first
                is_written = chosen[start : start + len(expected)] == expected
                if is_written and len(expected) <= MAX_NEW_TOKENS:
                    right.add(each)
            together = []
        return right

    @torch.inference_mode()
    def _batch(self, prompts: list[list[int]]) -> list[Answer]:
        width = max(map(len, prompts))
        ids = torch.tensor([[self.pad] * (width - len(p)) + p for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        places = (mask.cumsum(1) - 1).clamp(min=0)
        cache = DynamicCache()
        written: list[list[int]] = [[] for _ in prompts]
        is_done = [False] * len(prompts)
        rows = list(range(len(prompts)))  # of those that are still written
        for _ in range(MAX_NEW_TOKENS):
            output = self.model(
                input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache,
                use_cache=True, logits_to_keep=1,
            )  # fmt: skip
            ids = output.logits[:, -1].argmax(-1, keepdim=True)  # (rows, 1)
            for row, token in zip(rows, ids[:, 0].tolist(), strict=True):
                if token == self.end:
                    is_done[row] = True
                else:
                    written[row].append(token)
            left = [place for place, row in enumerate(rows) if not is_done[row]]
            if not left:
                break
            if len(left) < len(rows):
                rows, kept = [rows[place] for place in left], torch.tensor(left)
                cache.batch_select_indices(kept)
                ids, mask, places = ids[kept], mask[kept], places[kept]
            mask = torch.cat((mask, mask.new_ones(len(rows), 1)), dim=1)
            places = places[:, -1:] + 1
        texts = self.tokenizer.decode_batch(written, skip_special_tokens=False)
        return [Answer(text, ended) for text, ended in zip(texts, is_done, strict=True)]


def turns_of(dialog: Dialog) -> list[tuple[str, Message]]:
    """Prompt and expected message of every marked turn."""
    return [
        (prompt_text(dialog.messages[:number], dialog.tools), message)
        for number, message in enumerate(dialog.messages)
        if message.is_scored
    ]


def items_of(name: str, count: int, seed: int = SEED) -> list[Dialog]:
    """The score items of a skill; those written by hand are always all."""
    return by_hand.dialogs() if name == BY_HAND else score_items(seed, BY_NAME[name], count)


def score_skills(decoder: Decoder, names: Sequence[str], count: int) -> list[Score]:
    """Score skills on `count` held-out items of each.

    All are answered together: the more prompts to choose from, the less a batch is filled up.
    """
    items = {name: [turns_of(dialog) for dialog in items_of(name, count)] for name in names}
    turns = [turn for of_skill in items.values() for item in of_skill for turn in item]
    guesses = [expected.text() for _, expected in turns]
    answers = iter(decoder.answers([prompt for prompt, _ in turns], guesses))
    return [
        _score(name, [[Turn(*turn, next(answers)) for turn in item] for item in items[name]])
        for name in names
    ]


def _score(name: str, items: list[list[Turn]]) -> Score:
    turns = [turn for item in items for turn in item]
    return Score(
        skill=name,
        goal=BY_NAME[name].goal if name in BY_NAME else 0.9,
        num_items=len(items),
        num_right=sum(all(turn.is_right for turn in item) for item in items),
        num_turns=len(turns),
        num_ended=sum(turn.answer.has_ended for turn in turns),
        wrong=tuple(turn for turn in turns if not turn.is_right),
    )


def table(scores: Sequence[Score]) -> str:
    """The scores as a Markdown table."""
    lines = [
        "| skill | items | right | goal | turns ended |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for score in scores:
        mark = "" if score.share >= score.goal else " (short)"
        lines.append(
            f"| {score.skill} | {score.num_items} | {score.share:.1%} | {score.goal:.0%}{mark}"
            f" | {score.num_ended}/{score.num_turns} |"
        )
    mean = sum(score.share for score in scores) / len(scores)
    lines.append(f"| **mean** | {sum(s.num_items for s in scores)} | {mean:.1%} | | |")
    return "\n".join(lines)


def as_json(scores: Sequence[Score]) -> dict[str, dict[str, object]]:
    """The scores and up to twenty wrong turns of each skill."""
    return {
        score.skill: {
            "items": score.num_items,
            "right": score.num_right,
            "goal": score.goal,
            "turns": score.num_turns,
            "ended": score.num_ended,
            "wrong": [
                {"prompt": t.prompt, "expected": t.expected.text(), "got": t.answer.text}
                for t in score.wrong[:20]
            ],
        }
        for score in scores
    }


def score_all(folder: Path, count: int, names: Sequence[str] = ()) -> list[Score]:
    """Score the model in a folder on all skills, or on some."""
    decoder = Decoder(folder)
    every = [*(skill.name for skill in SKILLS), BY_HAND]
    return score_skills(decoder, names or every, count)
