"""What a hub, a name, a disk or the network refuses is explained."""

from pathlib import Path

import pytest
from huggingface_hub.errors import HFValidationError

from inference import EngineConfig
from inference.catalog import discover
from inference.hub import Pull, RemoteFile, plan_pull, pull, remove
from inference.hub_talk import HubError, talk, token_of
from tests.inference.hub_server import NAME, SHA, Hub


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "RepoNotFound", "no model org/tiny"),
        (403, "GatedRepo", "accept its terms"),
        (401, "RepoNotFound", "private"),
        (401, "Invalid credentials in Authorization header", "HF_TOKEN is not accepted"),
        (403, "", "HF_TOKEN is not accepted"),
        (403, "Access to this resource is disabled.", "closed org/tiny to everybody"),
        (429, "", "Try again later"),
        (500, "", "answered with an error of its own .500.. Try again later"),
        (418, "", "answered with an error"),
    ],
)
def test_the_hubs_no_is_explained(
    hub: Hub, tmp_path: Path, status: int, code: str, words: str
) -> None:
    hub.problem = (status, code)
    with pytest.raises(HubError, match=words):
        plan_pull(NAME, tmp_path)


@pytest.mark.parametrize("setting", ["hf_abc\u2011def", "hf_abc def", "hf_a\nb", "hf_\x7f"])
def test_a_token_that_is_none_is_refused_and_not_shown(setting: str) -> None:
    with pytest.raises(HubError, match="HF_TOKEN holds characters") as caught:
        token_of(setting)
    assert setting not in str(caught.value)


def test_a_token_is_what_stands_between_white_space() -> None:
    assert token_of(" hf_abc\n") == "hf_abc"
    assert token_of("\n") is None


def test_no_network_is_said(hub: Hub, tmp_path: Path) -> None:
    hub.shutdown()
    hub.server_close()
    with pytest.raises(HubError, match="cannot be reached"):
        plan_pull(NAME, tmp_path)


NO_NAMES = [
    *("", "x", "a/b/c", "../x", "/etc/passwd", "a/..", "org/.", "org/", "/x", "./x", "org/-x"),
    *("org/x.", "org/a..b", "org/a--b", "org/x.git", "or g/x", "org/a b", "org/ä", "org/x\n"),
    *("org/a\x00", "org\\x/y", "~/x", "org/" + "x" * 97, "https://huggingface.co/org/x"),
]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / "org" / "other").mkdir(parents=True)
    with pytest.raises(HubError, match="no model name"):
        plan_pull(name, tmp_path)
    with pytest.raises(HubError, match="no model name"):
        remove(name, tmp_path)
    assert (tmp_path / "org" / "other").is_dir()


@pytest.mark.parametrize("name", ["org/x", "Qwen/Qwen2.5-0.5B_v1", "a/b", "o/" + "x" * 96])
def test_a_name_that_is_one(name: str, tmp_path: Path) -> None:
    assert not remove(name, tmp_path)


def test_a_name_that_only_the_client_refuses_is_explained() -> None:
    def ask() -> None:
        raise HFValidationError("Repo id must be kind.")

    with pytest.raises(HubError, match="knows no such name: Repo id must be kind"):
        talk(NAME, ask)


@pytest.mark.parametrize(
    "file", ["../../../escaped/evil.json", "/tmp/evil.json", "a/../../evil.json", "a\x00b.json"]
)
def test_a_file_that_would_leave_the_models_directory_is_refused(
    hub: Hub, tmp_path: Path, file: str
) -> None:
    models_dir = tmp_path / "deep" / "models"
    hub.more_siblings = [{"rfilename": file, "size": 5}]
    with pytest.raises(HubError, match="would leave its directory"):
        plan_pull(NAME, models_dir)
    with pytest.raises(HubError, match="would leave its directory"):
        pull(Pull(NAME, SHA, (RemoteFile(file, 5),)), models_dir)
    assert not [f for f in tmp_path.rglob("*evil*") if hub.folder not in f.parents]
    assert not Path("/tmp/evil.json").exists()


def test_a_directory_on_another_disk_is_inside(hub: Hub, tmp_path: Path) -> None:
    models_dir, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    (models_dir / "org").mkdir(parents=True)
    elsewhere.mkdir()
    (models_dir / NAME).symlink_to(elsewhere)
    pull(plan_pull(NAME, models_dir), models_dir)
    assert (elsewhere / "config.json").exists()


def test_a_full_disk_is_called_one(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    (tmp_path / NAME).mkdir(parents=True)
    # What the kernel has for this purpose: writing to it says that no space is left.
    (tmp_path / NAME / f"model.safetensors.{SHA[:12]}.partial").symlink_to("/dev/full")
    with pytest.raises(HubError, match="disk is full"):
        pull(plan, tmp_path)
    assert NAME not in discover(EngineConfig(models_dir=tmp_path))


def test_a_directory_that_cannot_be_written_is_named(hub: Hub, tmp_path: Path) -> None:
    plan = plan_pull(NAME, tmp_path)
    (tmp_path / NAME).parent.mkdir()
    (tmp_path / NAME).write_text("a file in the way")
    with pytest.raises(HubError, match=r"org/tiny cannot be written \("):
        pull(plan, tmp_path)
