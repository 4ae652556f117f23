"""What the files of a Whisper model say: its languages, tasks and tokens. Loads no weights."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.errors import ModelRefused
from inference.hearing_messages import WINDOW_TOKENS
from inference.weights import read_config

GENERATION_FILE = "generation_config.json"
FEATURES_FILE = "preprocessor_config.json"
_TASKS = ("transcribe", "translate")


@dataclass(frozen=True, slots=True)
class HearingLayout:
    """`languages` are token ids by codes ("de"), `tasks` by names; both are empty for a model of one
    language. Tokens from `first_time_id` on are times, in steps of 20 ms. `max_tokens` of the decoder
    are prompt and text together."""

    languages: dict[str, int]
    tasks: dict[str, int]
    first_time_id: int
    start_id: int
    end_id: int
    max_tokens: int

    @property
    def no_speech_id(self) -> int:
        return self.first_time_id - 2  # as transformers and Whisper's own code have it


def read_hearing_layout(path: Path) -> HearingLayout:
    """Raises ModelRefused."""
    config = read_config(path)
    if config.get("model_type") != "whisper":
        raise ModelRefused("Of models that write speech down, Whisper's architecture is served.")
    if config.get("max_source_positions") != WINDOW_TOKENS:
        raise ModelRefused("The model hears windows of another length than Whisper's 30 seconds.")
    told = _read(path / GENERATION_FILE)
    for file in ("tokenizer.json", FEATURES_FILE):
        if not (path / file).is_file():
            raise ModelRefused(f"{file} is missing.")
    no_times_id = _id(told.get("no_timestamps_token_id"), "no_timestamps_token_id")
    languages, tasks = told.get("lang_to_id") or {}, told.get("task_to_id") or {}
    if not told.get("is_multilingual", True):
        languages, tasks = {}, {}
    elif not (isinstance(languages, dict) and isinstance(tasks, dict) and languages):
        raise ModelRefused(f"{GENERATION_FILE} lacks lang_to_id: which languages there are.")
    elif any(task not in tasks for task in _TASKS):
        raise ModelRefused(f"{GENERATION_FILE} lacks task_to_id: what the model can do.")
    return HearingLayout(
        languages={
            str(code).strip("<|>"): _id(one, "lang_to_id") for code, one in languages.items()
        },
        tasks={str(name): _id(one, "task_to_id") for name, one in tasks.items()},
        first_time_id=no_times_id + 1,
        start_id=_id(config.get("decoder_start_token_id"), "decoder_start_token_id"),
        end_id=_id(config.get("eos_token_id"), "eos_token_id"),
        max_tokens=_id(config.get("max_target_positions"), "max_target_positions"),
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelRefused(f"{file.name} is missing, or is no JSON object.")
    return value


def _id(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ModelRefused(f"{name} of the model's files is no number: {value!r:.40}")
    return value
