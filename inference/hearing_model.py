"""Whisper in its worker: a window of sound in, tokens out, by transformers' own `generate`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import GenerationConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.generation.logits_process import LogitsProcessor
from transformers.generation.stopping_criteria import StoppingCriteria, StoppingCriteriaList
from transformers.modeling_outputs import BaseModelOutput

from inference.encoder_revision import revision_of
from inference.errors import ModelRefused
from inference.hearing_layout import GENERATION_FILE, HearingLayout, read_hearing_layout
from inference.hearing_messages import RATE_HZ, WINDOW_SAMPLES, WINDOW_TOKENS, Heard, HearRequest
from inference.int8_linear import weights_bytes
from inference.loader import (
    Progress,
    check_complete,
    check_memory,
    from_pretrained,
    read_model_config,
    tensors_counted,
)
from inference.messages import ModelInfo
from inference.weights import read_weights


class _Ratings(LogitsProcessor):
    """Notes how likely each chosen token was, by the scores that it was chosen by: it comes last."""

    def __init__(self) -> None:
        self.logprobs: list[float] = []
        self._last: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self.note(int(input_ids[0, -1]))
        self._last = scores[0].float().log_softmax(-1)
        return scores

    def note(self, token_id: int) -> None:
        """What followed the last scores."""
        if self._last is not None:
            self.logprobs.append(float(self._last[token_id]))
        self._last = None


class _Between(StoppingCriteria):
    """Asks after each token whether it is to go on."""

    def __init__(self, goes_on: Callable[[], bool]) -> None:
        self.goes_on = goes_on

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        return torch.full((input_ids.shape[0],), not self.goes_on(), dtype=torch.bool)


class HearingModel:
    """Single-threaded. `layout` is what the files say."""

    def __init__(
        self, model: Any, layout: HearingLayout, features: WhisperFeatureExtractor
    ) -> None:
        self.model = model
        self.layout = layout
        self._features = features

    @torch.inference_mode()
    def hear(self, request: HearRequest, goes_on: Callable[[], bool] = lambda: True) -> Heard:
        """The tokens of one window; fewer where `goes_on` has said no after one of them."""
        states = self._encode(request.samples)
        language_id, no_speech = self._look(states)
        if not self.layout.languages:
            language_id = None
        elif request.language_id is not None:
            language_id = request.language_id
        begin = [*request.prompt_ids, *self._beginning(request, language_id)]
        ratings = _Ratings()
        output: Tensor = self.model.generate(
            encoder_outputs=states,
            generation_config=self._settings(request),
            decoder_input_ids=torch.tensor([begin]),
            return_timestamps=request.has_times,
            temperature=request.temperature,
            logits_processor=[ratings],
            stopping_criteria=StoppingCriteriaList([_Between(goes_on)]),
            force_unique_generate_call=True,
            return_dict_in_generate=False,
        )
        ids = output[0].tolist()
        ids = ids[len(begin) :] if ids[: len(begin)] == begin else ids
        ratings.note(ids[-1] if len(ids) > len(ratings.logprobs) else self.layout.end_id)
        written = tuple(one for one in ids if one != self.layout.end_id)
        rated = ratings.logprobs or [0.0]
        return Heard(written, language_id, sum(rated) / len(rated), no_speech)

    def _encode(self, samples: bytes) -> BaseModelOutput:
        sound = np.frombuffer(samples, dtype="<i2").astype(np.float32) / 32_768
        found = self._features(
            sound, sampling_rate=RATE_HZ, return_tensors="pt", device="cpu"
        ).input_features
        output: BaseModelOutput = self.model.get_encoder()(found.to(self.model.dtype))
        return output

    def _look(self, states: BaseModelOutput) -> tuple[int | None, float]:
        """The likeliest language, and how likely it is that nobody speaks."""
        start = torch.tensor([[self.layout.start_id]])
        output = self.model(encoder_outputs=states, decoder_input_ids=start, use_cache=False)
        scores = output.logits[0, -1].float()
        ids = sorted(self.layout.languages.values())
        language_id = ids[int(scores[ids].argmax())] if ids else None
        return language_id, float(scores.softmax(-1)[self.layout.no_speech_id])

    def _beginning(self, request: HearRequest, language_id: int | None) -> list[int]:
        known = [one for one in (language_id, request.task_id) if one is not None]
        times = [] if request.has_times else [self.layout.first_time_id - 1]
        return [self.layout.start_id, *known, *times]

    def _settings(self, request: HearRequest) -> GenerationConfig:
        """Anew for each: `generate` changes what it is given."""
        settings = GenerationConfig.from_dict(self.model.generation_config.to_dict())
        settings.max_new_tokens = None
        settings.max_length = self.layout.max_tokens
        return settings


def load_hearing(
    name: str, path: Path, progress: Progress, dtype: torch.dtype
) -> tuple[HearingModel, ModelInfo]:
    """Load a Whisper model after every check that can be made before.

    Raises ModelRefused or ModelTooLarge. Never runs code from the model's directory and never opens
    pickled weights.
    """
    progress("reading files", 0.0)
    layout = read_hearing_layout(path)
    weights = read_weights(path)
    check_memory(name, weights, dtype)
    config = read_model_config(path)
    with tensors_counted(progress):
        model, report = from_pretrained(WhisperForConditionalGeneration, path, config, dtype=dtype)
    check_complete(model, report)
    _check_ids(model, layout)
    progress("checking a window", 0.9)
    info = ModelInfo(
        name=name,
        revision=revision_of(path, weights),
        architecture=str(config.model_type),
        num_parameters=weights.num_parameters,
        weights_bytes=weights_bytes(model),
        max_context_tokens=WINDOW_TOKENS,
        dtype=str(dtype).removeprefix("torch."),
        device="cpu",
    )
    return HearingModel(model, layout, _read_features(path)), info


def _read_features(path: Path) -> WhisperFeatureExtractor:
    try:
        features = WhisperFeatureExtractor.from_pretrained(path, local_files_only=True)
    except (ValueError, KeyError, OSError, TypeError) as error:
        raise ModelRefused(f"How the model hears is not to be read: {error}") from error
    if features.sampling_rate != RATE_HZ or features.n_samples != WINDOW_SAMPLES:
        raise ModelRefused("The model hears other windows than 30 seconds at 16 kHz.")
    return features


def _check_ids(model: nn.Module, layout: HearingLayout) -> None:
    most = model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    ids = [*layout.languages.values(), *layout.tasks.values()]
    if max(*ids, layout.first_time_id, layout.start_id, layout.end_id) >= most:
        raise ModelRefused(f"{GENERATION_FILE} names tokens that the model does not have.")
