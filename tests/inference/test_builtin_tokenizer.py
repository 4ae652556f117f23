"""The committed tokenizer: one vocabulary in two files, and every dialog through it unharmed."""

import base64
import json
from itertools import islice

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from inference.builtin import MODEL_DIR
from inference.builtin.mixture import SKILLS, score_items, training_dialogs
from inference.builtin.packing import batches, rows_of
from inference.builtin.template import ADDED_TOKENS, IM_END, JINJA, segments
from inference.builtin.tokenizer import SPECIAL_TOKENS, VOCAB_SIZE, load, tokenizer_config

CONFIG = json.loads((MODEL_DIR / "tokenizer_config.json").read_text())
CONTEXT = json.loads((MODEL_DIR / "config.json").read_text())["max_position_embeddings"]


def ranks() -> tiktoken.Encoding:
    lines = (MODEL_DIR / "vocab.tiktoken").read_text().splitlines()
    pairs = (line.split() for line in lines)
    added = {row["content"]: int(number) for number, row in CONFIG["added_tokens_decoder"].items()}
    return tiktoken.Encoding(
        name="builtin",
        pat_str=CONFIG["pat_str"],
        mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in pairs},
        special_tokens=added,
        explicit_n_vocab=VOCAB_SIZE,
    )


ENCODING = ranks()
TOKENIZER = load()


@given(st.text(max_size=200))
def test_tiktoken_and_tokenizers_give_the_same_ids_for_any_text(text: str) -> None:
    ids = TOKENIZER.encode(text).ids
    if not any(mark in text for mark in (*SPECIAL_TOKENS, *ADDED_TOKENS)):
        assert ENCODING.encode_ordinary(text) == ids
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text


def test_they_agree_on_dialogs_with_all_their_marks() -> None:
    for dialog in islice(training_dialogs(3, {}), 200):
        text = "".join(segment.text for segment in segments(dialog))
        assert ENCODING.encode(text, allowed_special="all") == TOKENIZER.encode(text).ids


def test_repeats_are_targets_and_nothing_new_is() -> None:
    dialogs = list(islice(training_dialogs(4, {}), 60))
    plain, marked = rows_of(TOKENIZER, dialogs), rows_of(TOKENIZER, dialogs, with_repeats=True)
    num_marked = 0
    for before, after in zip(plain, marked, strict=True):
        assert before.ids == after.ids
        tokens = [TOKENIZER.id_to_token(i) for i in after.ids]
        for i, (was, count) in enumerate(zip(before.counts, after.counts, strict=True)):
            # The token and what announces it: the one before, or the two before behind a space.
            width = 3 if i > 1 and tokens[i - 1] == "Ġ" else 2
            run = tokens[i + 1 - width : i + 1]
            starts = range(i + 1 - width)
            is_repeat = any(tokens[j : j + width] == run for j in starts)
            assert count == (was or is_repeat)
            num_marked += is_repeat and not was
    assert num_marked


def test_what_copying_tells_counts_once_and_what_it_does_not_more() -> None:
    dialogs = list(islice(training_dialogs(5, {"passages": 90.0}), 60))
    plain, weighed = rows_of(TOKENIZER, dialogs), rows_of(TOKENIZER, dialogs, choice_count=5)
    choices = 0
    for before, after in zip(plain, weighed, strict=True):
        assert before.ids == after.ids
        for i, (was, count) in enumerate(zip(before.counts, after.counts, strict=True)):
            led = [j for j in range(4, i) if after.ids[j - 4 : j] == after.ids[i - 4 : i]]
            others = {after.ids[j] for j in led} - {after.ids[i]}
            is_choice = was and (not before.counts[i - 1] or bool(others))
            assert count == (5 if is_choice else was)
            choices += bool(is_choice)
    assert choices


def test_a_word_is_the_same_tokens_wherever_it_stands() -> None:
    """Or the model would have to translate what it copies; see `PATTERN`."""
    words = ("distance", "Rotterdam", "Speekla", "tuna", "QX", "getRoute")
    for word in words:
        alone = TOKENIZER.encode(word).tokens
        for frame in (
            "the {} is",
            '"{}"',
            "[1] {}.",
            "a\n{}\n",
            "({})",
            "'{}'",
            "x_{}",
            "{}'s",
            "7{}",
        ):
            tokens = TOKENIZER.encode(frame.format(word)).tokens
            assert any(tokens[i : i + len(alone)] == alone for i in range(len(tokens))), (
                word,
                frame,
                tokens,
            )


def test_encoding_in_segments_equals_encoding_the_whole() -> None:
    dialogs = list(islice(training_dialogs(4, {}), 200))
    for dialog, row in zip(dialogs, rows_of(TOKENIZER, dialogs), strict=True):
        whole = TOKENIZER.encode("".join(s.text for s in segments(dialog))).ids
        assert list(row.ids) == whole[: len(row.ids)]
        assert row.ids[-1] == TOKENIZER.token_to_id(IM_END)
        targets = [i for i, count in zip(row.ids, row.counts, strict=True) if count]
        answers = "".join(s.text for s in segments(dialog) if s.is_target)
        assert TOKENIZER.decode(targets, skip_special_tokens=False) == answers


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_every_dialog_fits_the_context(skill: object) -> None:
    for row in rows_of(TOKENIZER, score_items(6, skill, 20)):  # type: ignore[arg-type]
        assert len(row.ids) <= CONTEXT


def test_batches_hold_whole_dialogs_of_like_length() -> None:
    stream = batches(
        TOKENIZER, islice(training_dialogs(5, {}), 300), batch_tokens=2048, max_length=512, seed=1
    )
    made = list(stream)
    assert made
    assert all(len(row.ids) <= batch.length <= 512 for batch in made for row in batch.rows)


def test_tool_marks_survive_where_special_tokens_are_skipped() -> None:
    ids = TOKENIZER.encode("<tool_call>\n{}\n</tool_call><|im_end|>").ids
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == "<tool_call>\n{}\n</tool_call>"


def test_digits_are_single_tokens() -> None:
    assert len(TOKENIZER.encode("1234567890").ids) == 10


def test_committed_files_are_what_the_code_writes() -> None:
    assert tokenizer_config() == CONFIG
    assert (MODEL_DIR / "chat_template.jinja").read_text() == JINJA
