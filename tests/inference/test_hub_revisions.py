"""A newer revision takes the older one's place, and only when it is whole."""

from pathlib import Path

import pytest

from inference.hub import plan_pull, pull
from inference.hub_talk import HubError
from tests.inference.hub_server import NAME, NEWER, Hub, held


def _commit(hub: Hub) -> dict[str, bytes]:
    """A newer revision: weights and settings of the same size as before, one file less, one more."""
    weights = hub.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-400] + bytes(400))
    settings = hub.folder / "tokenizer_config.json"
    settings.write_bytes(settings.read_bytes()[:-1] + b" ")
    (hub.folder / "chat_template.jinja").unlink()
    (hub.folder / "added.json").write_text("{}")
    hub.sha = NEWER
    hub.sent.clear()
    return held(hub.folder)


@pytest.fixture
def pulled(hub: Hub, tmp_path: Path) -> Path:
    models_dir = tmp_path / "models"
    return pull(plan_pull(NAME, models_dir), models_dir)


def test_a_newer_revision_replaces_the_older_one_whole(
    hub: Hub, pulled: Path, tmp_path: Path
) -> None:
    newer = _commit(hub)
    models_dir = tmp_path / "models"
    pull(plan_pull(NAME, models_dir), models_dir)
    assert held(pulled) == newer
    hub.sent.clear()
    pull(plan_pull(NAME, models_dir), models_dir)
    assert set(hub.sent) == {"config.json"}, "only looked at: all of it is there"


def test_large_files_that_did_not_change_are_not_fetched_again(
    hub: Hub, pulled: Path, tmp_path: Path
) -> None:
    (hub.folder / "tokenizer_config.json").write_text("{}")
    hub.sha = NEWER
    hub.sent.clear()
    pull(plan_pull(NAME, tmp_path / "models"), tmp_path / "models")
    assert held(pulled) == held(hub.folder)
    assert "model.safetensors" not in hub.sent


def test_the_older_revision_stays_until_the_newer_one_is_there(
    hub: Hub, pulled: Path, tmp_path: Path
) -> None:
    models_dir = tmp_path / "models"
    older = held(pulled)
    newer = _commit(hub)
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan_pull(NAME, models_dir), models_dir)
    assert {name: older[name] for name in older} == {
        name: content for name, content in held(pulled).items() if ".partial" not in name
    }
    hub.break_after_bytes = None
    hub.ranges.clear()
    pull(plan_pull(NAME, models_dir), models_dir)
    assert hub.ranges, "and what had arrived was not fetched twice"
    assert held(pulled) == newer


def test_a_half_fetched_file_is_not_completed_from_another_revision(
    hub: Hub, tmp_path: Path
) -> None:
    models_dir = tmp_path / "models"
    hub.break_after_bytes = 100_000
    with pytest.raises(HubError):
        pull(plan_pull(NAME, models_dir), models_dir)
    hub.break_after_bytes = None
    newer = _commit(hub)
    path = pull(plan_pull(NAME, models_dir), models_dir)
    assert held(path) == newer


def test_files_of_unknown_origin_are_looked_into(hub: Hub, pulled: Path, tmp_path: Path) -> None:
    (pulled / ".pulled").unlink()
    weights = pulled / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))
    pull(plan_pull(NAME, tmp_path / "models"), tmp_path / "models")
    assert held(pulled) == held(hub.folder)
