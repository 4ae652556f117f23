"""What must hold for the text that the built-in model learns from."""

import json
import os
import random
import subprocess
import sys
from importlib import import_module
from itertools import islice, pairwise
from pathlib import Path
from pkgutil import iter_modules

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from inference.builtin import facts, skills
from inference.builtin.by_hand import dialogs as by_hand
from inference.builtin.dialog import Dialog, Message
from inference.builtin.mixture import BY_NAME, SKILLS, Style, score_items, training_dialogs
from inference.builtin.packing import rows_of
from inference.builtin.phrasing import MORE, UNSCORED, Typing, expand, normal, split_of, typed
from inference.builtin.skills import search
from inference.builtin.skills.calculator import value_of
from inference.builtin.skills.passages import ABSENT, library, naming
from inference.builtin.template import IM_END, JINJA, prompt_text, segments
from inference.builtin.tokenizer import load, name_pieces
from inference.builtin.words import Words, hash_of, is_held_out, words_of


def pattern_groups() -> list[tuple[str, ...]]:
    """All groups of phrasings that people may use, from all skills."""
    found: list[tuple[str, ...]] = []
    for info in iter_modules(skills.__path__):
        for name, value in vars(import_module(f"{skills.__name__}.{info.name}")).items():
            if name.startswith(("INTENTS", "FACTS", "TRAITS", "PROGRAMS")):
                for row in value:
                    fields = (
                        getattr(row, f, ()) for f in ("patterns", "tell", "questions", "asks")
                    )
                    found += [group for group in fields if group]
    for kind in facts.KINDS:
        found += [family.asks for family in kind]
    return found


def sample(count: int) -> list[Dialog]:
    return list(islice(training_dialogs(7, {}), count))


def test_no_phrasing_is_used_both_for_training_and_for_scoring() -> None:
    for group in pattern_groups():
        split = split_of(group)
        train = {normal(text) for texts in split["train"] for text in texts}
        test = {normal(text) for texts in split["test"] for text in texts}
        assert train
        assert test
        assert not train & test


def test_what_widens_a_group_is_scored_only_where_nothing_else_of_it_is() -> None:
    numbers = "|".join(str(number) for number in range(60))
    split = split_of(
        (f"how old is number ({numbers})?", MORE, f"since when is there a ({numbers})?")
    )
    assert {text.split()[0] for texts in split["test"] for text in texts} == {"how"}
    assert {text.split()[0] for texts in split["train"] for text in texts} == {"how", "since"}
    alone = next(f"is it {n}?" for n in range(60) if not is_held_out(normal(f"is it {n}?")))
    split = split_of((alone, MORE, f"since when is there a ({numbers})?"))
    assert {text.split()[0] for texts in split["test"] for text in texts} == {"since"}


def test_company_that_is_not_scored_leaves_what_is_scored_as_it_was() -> None:
    numbers = "|".join(str(number) for number in range(60))
    usual = (f"how old is number ({numbers})?", MORE, f"since when is there a ({numbers})?")
    company = f"how old would ({numbers}) be?"
    split, widened = split_of(usual), split_of((*usual, UNSCORED, company))
    assert widened["test"] == split["test"]
    *before, added = widened["train"]
    assert tuple(before) == split["train"]
    assert set(added) == {text for text in expand(company) if not is_held_out(normal(text))}


def test_company_is_never_a_phrasing_that_is_scored() -> None:
    held_out = {
        normal(text)
        for group in pattern_groups()
        for texts in split_of(group)["test"]
        for text in texts
    }
    for group in pattern_groups():
        if UNSCORED in group:
            before = split_of(group[: group.index(UNSCORED)])["train"]
            company = split_of(group)["train"][len(before) :]
            assert not held_out & {normal(text) for texts in company for text in texts}


def test_a_search_is_answered_by_a_sentence_that_names_what_was_looked_for() -> None:
    num_found = 0
    for dialog in score_items(5, next(s for s in SKILLS if s.name == "search"), 300):
        for asked, call, _, answer in zip(*(dialog.messages[n:] for n in range(4)), strict=False):
            if not answer.is_scored or call.call is None or answer.content == ABSENT:
                continue
            query = call.call.arguments["query"]
            if query != search.query_of(asked.content):
                num_found += 1
                stem = query.lower().removesuffix("y")
                assert stem in answer.content.lower()
    assert num_found > 30


def test_a_title_that_begins_small_was_said_word_for_word() -> None:
    titles = 0
    for dialog in score_items(5, BY_NAME["title"], 300):
        said = " ".join(message.content for message in dialog.messages[:-1])
        title = dialog.messages[-1].content
        assert not title[0].islower() or title.removeprefix("how to ") in said, title
        titles += title[0].islower()
    assert titles > 15


def test_what_names_a_word_is_found_in_one_and_in_several() -> None:
    words = Words(random.Random(2), "train")
    books = next(b for b in iter(lambda: library(words), None) if len(b.found) > 6)
    for number, stated in books.found:
        if stated.subject in stated.sentence:
            assert f"{stated.sentence.rstrip('.')} [{number}]." in naming(books, stated.subject)
    assert naming(books, "quuxibar") == []


def test_a_please_makes_no_held_out_phrasing_of_a_trained_one() -> None:
    assert is_held_out(normal("say something funny please"))
    rng, chatty = random.Random(1), Typing(is_chatty=True)
    said = {typed(rng, chatty, "say something funny") for _ in range(500)}
    assert len(said) > 10
    assert not any(is_held_out(normal(text)) for text in said)


def test_held_out_small_talk_never_occurs_in_training_dialogs() -> None:
    held_out = {
        normal(text)
        for group in pattern_groups()
        for texts in split_of(group)["test"]
        for text in texts
        if "{" not in text
    }
    said = {normal(m.content) for d in sample(1500) for m in d.messages if m.role == "user"}
    assert not held_out & said


def test_training_and_scoring_draw_from_different_words() -> None:
    for name in ("NAMES", "CITIES", "THINGS", "TOPICS"):
        assert not set(words_of(name, "train")) & set(words_of(name, "test"))
    train, test = Words(random.Random(1), "train"), Words(random.Random(1), "test")
    assert not any(is_held_out(train.coined()) for _ in range(200))
    assert all(is_held_out(test.coined()) for _ in range(200))


def test_names_from_pieces_of_the_vocabulary_are_not_those_of_scoring() -> None:
    words = Words(random.Random(1), "train", name_pieces(load()))
    made = [words.coined() for _ in range(500)]
    assert not any(is_held_out(word) for word in made)
    held_out = set(words_of("NAMES", "test")) | set(words_of("CITIES", "test"))
    assert not held_out & {word.capitalize() for word in made}


def test_short_dialogs_are_short() -> None:
    def mean_length(style: Style) -> float:
        rows = rows_of(load(), list(islice(training_dialogs(7, {}, style=style), 400)))
        return sum(len(row.ids) for row in rows) / len(rows)

    assert mean_length(Style(is_short=True)) < 0.8 * mean_length(Style())


def test_about_a_sixth_of_the_phrasings_is_held_out() -> None:
    split = [split_of(group) for group in pattern_groups()]
    train = sum(len(texts) for s in split for texts in s["train"])
    test = sum(len(texts) for s in split for texts in s["test"])
    assert 0.12 < test / (train + test) < 0.22


def test_the_same_seed_gives_the_same_dialogs() -> None:
    assert sample(50) == sample(50)
    assert next(training_dialogs(8, {})) != next(training_dialogs(9, {}))
    for skill in SKILLS:
        assert score_items(3, skill, 3) == score_items(3, skill, 3)


def test_every_process_makes_the_same_dialogs() -> None:
    """Python hashes texts anew in every process; nothing may hang on the order of a set."""
    made = {
        subprocess.run(
            [sys.executable, "-m", "inference.builtin", "generate", "--count", "400"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "3")
    }
    assert len(made) == 1


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_every_score_item_has_a_checked_answer_with_text(skill: object) -> None:
    for dialog in score_items(5, skill, 30):  # type: ignore[arg-type]
        checked = [message for message in dialog.messages if message.is_scored]
        assert checked
        assert all(m.role == "assistant" and m.text().strip() for m in checked)
        assert dialog.messages[-1].role == "assistant"


def test_dialogs_alternate_and_end_with_an_answer() -> None:
    for dialog in sample(300):
        roles = [message.role for message in dialog.messages if message.role != "system"]
        assert roles[0] == "user"
        assert roles[-1] == "assistant"
        for before, after in pairwise(roles):
            assert (before == "assistant") != (after == "assistant")


def test_a_called_tool_was_offered_and_its_arguments_fit_the_schema() -> None:
    for dialog in sample(600):
        offered = {
            tool["function"]["name"]: tool["function"]["parameters"] for tool in dialog.tools
        }
        for message in dialog.messages:
            if message.call:
                schema = offered[message.call.name]
                assert set(schema["required"]) <= set(message.call.arguments)
                assert set(message.call.arguments) <= set(schema["properties"])


def test_the_jinja_template_gives_the_same_text_as_the_fast_one() -> None:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(JINJA)
    for dialog in [*sample(150), *by_hand()]:
        made = dialog.as_json()
        text = template.render(messages=made["messages"], tools=made["tools"])
        assert text == "".join(segment.text for segment in segments(dialog))
        before = made["messages"][:-1]
        prompt = template.render(messages=before, tools=made["tools"], add_generation_prompt=True)
        assert prompt == prompt_text(dialog.messages[:-1], dialog.tools)


def test_targets_are_exactly_the_answers_with_their_end_marks() -> None:
    for dialog in sample(200):
        answers = [
            m.text() + IM_END for m in dialog.messages if m.role == "assistant" and m.is_learnt
        ]
        assert [s.text for s in segments(dialog) if s.is_target] == answers


def test_a_cut_answer_is_no_example() -> None:
    dialog = Dialog("", (Message("user", "hi"), Message("assistant", "He", is_learnt=False)))
    assert not any(segment.is_target for segment in segments(dialog))


def test_patterns_expand_to_all_their_texts() -> None:
    assert expand("(what is|what's) [the] time [now|here]?") == [
        "what is time?",
        "what is time now?",
        "what is time here?",
        "what is the time?",
        "what is the time now?",
        "what is the time here?",
        "what's time?",
        "what's time now?",
        "what's time here?",
        "what's the time?",
        "what's the time now?",
        "what's the time here?",
    ]
    assert hash_of("  Hello ") == hash_of("hello")


def test_results_of_the_calculator_are_those_of_the_sums() -> None:
    assert value_of("17 * 23") == "391"
    assert value_of("sqrt(144)") == "12"
    assert value_of("15 / 100 * 80") == "12"
    assert value_of("7 / 0") is None


def test_the_web_process_can_import_the_package_without_torch() -> None:
    source = Path(import_module("inference.builtin").__file__ or "").read_text()
    assert "torch" not in source.replace("torch-free", "")
