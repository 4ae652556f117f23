"""Models pulled from a hub: whole, or not at all."""

import json
import shutil
from pathlib import Path

import pytest

from inference import EngineConfig, ModelRefused
from inference.catalog import discover
from inference.encoder_layout import read_encoder_layout
from inference.hub import plan_pull, pull, remove
from inference.hub_talk import HubError
from inference.kinds import kind_at
from tests.inference.hub_server import NAME, SHA, Hub, held
from tests.inference.tiny_models import make_encoder


def test_a_pulled_model_is_in_the_catalogue(hub: Hub, tmp_path: Path, tiny_model: Path) -> None:
    models_dir = tmp_path / "models"
    reports: list[tuple[int, int]] = []
    plan = plan_pull(NAME, models_dir)
    assert plan.revision == SHA
    path = pull(plan, models_dir, progress=lambda done, total: reports.append((done, total)))
    weights = "model.safetensors"
    assert (path / weights).read_bytes() == (tiny_model / weights).read_bytes()
    assert not (path / "pytorch_model.bin").exists()
    assert hub.sent[-1] == "config.json", "it marks the model as whole"
    assert not list(path.rglob("*.partial"))
    assert NAME in discover(EngineConfig(models_dir=models_dir))
    assert reports
    assert reports[-1][0] <= reports[-1][1] == plan.size_bytes
    assert remove(NAME, models_dir)
    assert NAME not in discover(EngineConfig(models_dir=models_dir))
    assert not remove(NAME, models_dir)


def test_an_interrupted_pull_is_no_model_and_goes_on(hub: Hub, tmp_path: Path) -> None:
    models_dir = tmp_path / "models"
    plan = plan_pull(NAME, models_dir)
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan, models_dir)
    assert NAME not in discover(EngineConfig(models_dir=models_dir))
    hub.break_after_bytes = None
    hub.ranges.clear()
    path = pull(plan, models_dir)
    assert hub.ranges, "the second try asked for the rest only"
    assert (path / "model.safetensors").stat().st_size == plan.weights_bytes


def test_progress_ends_at_the_end_where_a_server_knows_no_ranges(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan, tmp_path)
    hub.break_after_bytes, hub.knows_ranges = None, False
    reports: list[int] = []
    pull(plan, tmp_path, progress=lambda done, total: reports.append(done))
    assert max(reports) == reports[-1] == plan.size_bytes


def test_two_pulls_of_a_model_leave_each_other_alone(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    problems: list[str] = []

    def pull_again(done_bytes: int, total_bytes: int) -> None:
        if not problems:
            for meanwhile in (lambda: pull(plan, tmp_path), lambda: remove(NAME, tmp_path)):
                with pytest.raises(HubError) as caught:
                    meanwhile()
                problems.append(str(caught.value))

    path = pull(plan, tmp_path, progress=pull_again)
    assert problems == ["org/tiny is being pulled by another process."] * 2
    assert held(path) == held(hub.folder)


def test_pulling_again_mends_what_was_damaged(hub: Hub, tmp_path: Path) -> None:
    path = pull(plan_pull(NAME, tmp_path), tmp_path)
    for name in ("model.safetensors", "tokenizer.json"):
        size = (path / name).stat().st_size
        (path / name).write_bytes(bytes(size))
        hub.sent.clear()
        reports: list[int] = []
        plan = plan_pull(NAME, tmp_path)
        pull(plan, tmp_path, progress=lambda done, total: reports.append(done))  # noqa: B023
        assert hub.sent == ["config.json", name], "the first was looked at"
        assert max(reports) == reports[-1] == plan.size_bytes
        assert held(path) == held(hub.folder)


def test_an_adapter_is_called_one(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "config.json").unlink()
    config = {"peft_type": "LORA", "base_model_name_or_path": "org/large"}
    (hub.folder / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(HubError, match=r"LoRA adapter of org/large\..*VITRINE_ADAPTERS"):
        plan_pull(NAME, tmp_path)


def test_a_link_is_not_followed_to_delete(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "org").mkdir()
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HubError, match="is a link"):
        remove(NAME, tmp_path)
    assert (tmp_path / "elsewhere").is_dir()


def test_a_damaged_file_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    weights = hub.folder / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(HubError, match="damaged"):
        pull(plan, tmp_path)
    assert NAME not in discover(EngineConfig(models_dir=tmp_path))
    assert not list((tmp_path / NAME).rglob("model.safetensors*"))


def test_a_model_that_cannot_be_served_is_not_fetched(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "config.json").write_text(json.dumps({"architectures": ["BertForMaskedLM"]}))
    with pytest.raises(ModelRefused, match="no causal language model"):
        plan_pull(NAME, tmp_path)
    assert hub.sent == ["config.json"]


def test_an_embedding_model_comes_with_what_stands_behind_it(hub: Hub, tmp_path: Path) -> None:
    shutil.rmtree(hub.folder)
    make_encoder(hub.folder, pooling="mean", max_seq_length=32)
    config = json.loads((hub.folder / "config.json").read_text())
    config["architectures"] = ["BertForMaskedLM"]  # served for its modules.json alone
    (hub.folder / "config.json").write_text(json.dumps(config))
    (hub.folder / "2_Dense").mkdir()
    for name in ("2_Dense/model.safetensors", "2_Dense/config.json", "1_Pooling/evil.bin"):
        (hub.folder / name).write_bytes(b"{}")
    (hub.folder / "onnx").mkdir()
    (hub.folder / "onnx" / "model.safetensors").write_bytes(b"not wanted")
    plan = plan_pull(NAME, tmp_path)
    assert plan.weights_bytes == (hub.folder / "model.safetensors").stat().st_size
    path = pull(plan, tmp_path)
    assert kind_at(path) == "embedding"
    assert read_encoder_layout(path).window_tokens == 32
    assert {f.name for f in (path / "1_Pooling").iterdir()} == {"config.json"}
    assert (path / "2_Dense" / "model.safetensors").read_bytes() == b"{}"
    assert not (path / "onnx").exists()


def test_weights_that_are_there_a_second_time_are_left(hub: Hub, tmp_path: Path) -> None:
    weights = hub.folder / "model.safetensors"
    (hub.folder / "consolidated.safetensors").write_bytes(weights.read_bytes())
    (hub.folder / "consolidated.safetensors.index.json").write_text("{}")
    plan = plan_pull(NAME, tmp_path)
    assert plan.weights_bytes == weights.stat().st_size
    assert not list(pull(plan, tmp_path).glob("consolidated*"))
