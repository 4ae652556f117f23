"""The committed model on a sample of held-out items: it can what its model card says.

`python -m inference.builtin score` asks 200 items a skill; here fewer must do, so a share may be
missed by what so few items can miss by chance (three standard deviations, since many are looked at).
"""

import json
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from inference.builtin import MODEL_DIR
from inference.builtin.dialog import Dialog, Message
from inference.builtin.mixture import SKILLS
from inference.builtin.network import Network, Shape, initialise, to_hub
from inference.builtin.packing import Batch, Row
from inference.builtin.score import BY_HAND, Decoder, Score, is_right, score_skills
from inference.builtin.stage import Stage, batches_of
from inference.builtin.template import prompt_text
from inference.builtin.tokenizer import load
from inference.builtin.train import Trainer, tensors_of, train

NUM_ITEMS = 16
NAMES = [*(skill.name for skill in SKILLS), BY_HAND]
CARD = json.loads((MODEL_DIR / "scores.json").read_text())
MAX_WEIGHTS_BYTES = 16 * 1024 * 1024


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder(MODEL_DIR)


def least(num_good: float, num_of: int, num: int) -> float:
    """What the card's `num_good` of `num_of` promise of `num`, less three standard deviations.

    All of some is not all of all: half an item counts as not seen. And bfloat16 rounds otherwise in
    another batch, so the same item may come out differently.
    """
    share = num_good / (num_of + 0.5)
    return share - 3 * (share * (1 - share) / num) ** 0.5


@pytest.fixture(scope="module")
def scores(decoder: Decoder) -> dict[str, Score]:
    return {score.skill: score for score in score_skills(decoder, NAMES, NUM_ITEMS)}


@pytest.mark.timeout(600)  # the first one's: all skills are asked together
@pytest.mark.parametrize("name", NAMES)
def test_a_skill_is_as_good_as_the_card_says(scores: dict[str, Score], name: str) -> None:
    score = scores[name]
    card = CARD[name]
    ended = score.num_ended / score.num_turns
    assert ended >= least(card["ended"], card["turns"], score.num_turns)
    goal = min(card["right"], score.goal * card["items"])
    wrong = [t.answer.text for t in score.wrong][:5]
    assert score.share >= least(goal, card["items"], score.num_items), wrong


def test_it_calls_the_calculator_and_says_its_name_in_the_product(decoder: Decoder) -> None:
    from inference.builtin.by_hand import dialogs

    asked = {d.messages[-2].content: d for d in dialogs() if d.tools}
    for text in ("What is 17 * 23?", "My name is Ada. What is my name?"):
        dialog = asked[text]
        answer = decoder.answers([prompt_text(dialog.messages[:-1], dialog.tools)])[0]
        assert is_right(dialog.messages[-1], answer.text)
    dialog = asked["What is 17 * 23?"]
    messages = (*dialog.messages, Message("tool", "391"))
    answer = decoder.answers([prompt_text(messages, dialog.tools)])[0]
    assert answer.text == "17 * 23 is 391."


def test_who_has_ended_leaves_the_others_as_they_were(decoder: Decoder) -> None:
    from inference.builtin.by_hand import dialogs

    prompts = [prompt_text(d.messages[:-1], d.tools) for d in dialogs()[:6]]
    together = decoder.answers(prompts)
    assert together == [decoder.answers([prompt])[0] for prompt in prompts]
    assert len({len(answer.text) for answer in together}) > 1, "some end first"
    for right in (0, 1):  # what is guessed changes no answer, nor does a part of it
        texts = [a.text if n % 2 == right else a.text[:-1] for n, a in enumerate(together)]
        assert decoder.answers(prompts, texts) == together


def test_the_files_are_small_and_load_without_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert (MODEL_DIR / "model.safetensors").stat().st_size <= MAX_WEIGHTS_BYTES
    assert all(
        t.dtype == torch.bfloat16 for t in load_file(MODEL_DIR / "model.safetensors").values()
    )
    tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)
    model = AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.bfloat16)
    assert model.config.max_position_embeddings >= 2048
    messages = [{"role": "user", "content": "Hello"}]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert prompt == prompt_text([Message("user", "Hello")], ())
    assert tokenizer(prompt)["input_ids"] == load().encode(prompt).ids
    assert tokenizer.eos_token == "<|im_end|>"


def test_the_training_network_computes_what_transformers_computes(tmp_path: Path) -> None:
    from safetensors.torch import save_file
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from inference.builtin.network import hub_config

    shape = Shape(
        vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, head_dim=16
    )
    network = Network(shape)
    initialise(network, 1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.1)
    weights = to_hub(shape, dict(network.named_parameters()))
    save_file({n: w.detach() for n, w in weights.items()}, tmp_path / "model.safetensors")
    reference = Qwen3ForCausalLM(Qwen3Config(**hub_config(shape, eos_id=1, pad_id=0))).float()
    reference.load_state_dict({**weights, "lm_head.weight": weights["model.embed_tokens.weight"]})
    ids = torch.randint(96, (2, 200), generator=generator)
    with torch.no_grad():
        torch.testing.assert_close(network(ids), reference(ids).logits, rtol=1e-3, atol=1e-3)


def test_the_loss_is_taken_where_the_next_token_is_an_answer() -> None:
    row = Row((5, 6, 7, 8), (False, False, True, True))
    ids, places, targets = tensors_of(Batch((row, row), 6))
    assert ids.tolist() == [[5, 6, 7, 8, 0, 0]] * 2
    assert places.tolist() == [1, 2, 7, 8]
    assert targets.tolist() == [7, 8, 7, 8]


def test_a_stopped_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    shape = Shape(hidden_size=32, intermediate_size=64, num_hidden_layers=1, head_dim=16)
    stages = [
        Stage("one", 3000, 256, 1000, 0.01, 0.01, 1, pool_size=64),
        Stage("two", 2000, 256, 1000, 0.01, 0.0, 2, pool_size=64),
    ]
    train(stages[:1], tmp_path, shape, is_compiled=False)
    before = json.loads((tmp_path / "progress.json").read_text())
    assert before["stage"] == 1
    train(stages, tmp_path, shape, is_compiled=False)
    after = json.loads((tmp_path / "progress.json").read_text())
    assert after["stage"] == 2
    assert after["steps"] > before["steps"]
    assert (tmp_path / "export" / "model.safetensors").exists()


def test_several_processes_write_the_same_batches_in_turns() -> None:
    stage = Stage("s", 1, 256, 1000, 0.1, 0.1, 3, is_short=True, pool_size=40)
    alone = [batches_of(replace(stage, seed=3000 + number)) for number in (0, 1)]
    wanted = [next(alone[number % 2]) for number in range(9)]
    with closing(batches_of(stage, 3, num_processes=2)) as stream:
        assert list(islice(stream, 6)) == wanted[3:]


def test_a_training_can_start_from_an_exported_model(tmp_path: Path) -> None:
    shape = Shape(hidden_size=32, intermediate_size=64, num_hidden_layers=2, head_dim=16)
    stages = [Stage("one", 2000, 256, 1000, 0.01, 0.01, 1, pool_size=64)]
    train(stages, tmp_path / "a", shape, is_compiled=False)
    trainer = Trainer(shape, is_compiled=False)
    trainer.start_from(tmp_path / "a" / "export")
    exported = load_file(tmp_path / "a" / "export" / "model.safetensors")
    assert exported.keys() == to_hub(shape, trainer.masters).keys()
    for name, weight in to_hub(shape, trainer.masters).items():
        assert torch.equal(weight.bfloat16(), exported[name]), name


def test_an_answer_is_judged_by_its_text_or_its_parsed_call() -> None:
    wanted = Message("assistant", "Done.", None, ("Ready.",))
    assert is_right(wanted, "Ready.")
    assert not is_right(wanted, "Done")
    call = by_call('{"arguments": {"a": 1}, "name": "f"}')
    assert is_right(call, '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>')
    assert not is_right(call, '<tool_call>\n{"name": "f", "arguments": {"a": "1"}}\n</tool_call>')
    assert not is_right(call, "<tool_call>\n{\n</tool_call>")


def by_call(text: str) -> Message:
    from inference.builtin.dialog import Call

    made = json.loads(text)
    return Message("assistant", "", Call(made["name"], made["arguments"]))


def test_dialog_values_are_in_openai_format() -> None:
    dialog = Dialog("x", (Message("user", "hi"), by_call('{"name": "f", "arguments": {}}')))
    assert dialog.as_json()["messages"][1]["tool_calls"][0]["function"]["name"] == "f"
