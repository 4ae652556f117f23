"""Sound that is another thing all the time, and transformers' own Whisper beside ours."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

from inference.hearing_messages import WINDOW_SAMPLES


def noise(seconds: float, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    loud = np.repeat(rng.uniform(500, 12_000, round(seconds * 10) + 1), 1_600)
    samples = rng.standard_normal(round(seconds * 16_000)) * loud[: round(seconds * 16_000)]
    return bytes(samples.clip(-32_000, 32_000).astype("<i2").tobytes())


class Reference:
    """transformers' own, asked for one window after the other."""

    def __init__(self, path: Path) -> None:
        self.model: Any = WhisperForConditionalGeneration.from_pretrained(path).eval()
        self.features = WhisperFeatureExtractor.from_pretrained(path)
        self.end_id = self.model.generation_config.eos_token_id
        self.first_time_id = self.model.generation_config.no_timestamps_token_id + 1

    def ids(self, samples: bytes, *, has_times: bool, **settings: Any) -> list[int]:
        sound = np.frombuffer(samples, "<i2").astype(np.float32) / 32_768
        found = self.features(sound, sampling_rate=16_000, return_tensors="pt").input_features
        output = self.model.generate(
            found, return_timestamps=has_times, force_unique_generate_call=True, **settings
        )[0].tolist()
        start_id = self.model.generation_config.decoder_start_token_id
        begin = output.index(start_id) + (3 if has_times else 4)  # language, task, no times
        return [one for one in output[begin:] if one != self.end_id]

    def windows(self, samples: bytes, **settings: Any) -> list[list[int]]:
        """Of long sound, by transformers' own rule where the next window begins."""
        found = []
        while len(samples) >= 3_200:
            ids = self.ids(samples[: 2 * WINDOW_SAMPLES], has_times=True, **settings)
            found.append(ids)
            num_frames = min(len(samples) // 2, WINDOW_SAMPLES) // 160
            step = segments_of_transformers(ids, self.first_time_id, num_frames)[1]
            samples = samples[max(step, 100 if step else num_frames) * 320 :]
        return found


def segments_of_transformers(
    ids: list[int], first_time_id: int, num_frames: int
) -> tuple[list[dict[str, Any]], int]:
    segments, offset = WhisperForConditionalGeneration._retrieve_segment(
        torch.tensor(ids),
        seek_outputs=[None],
        time_offset=torch.zeros(1, dtype=torch.float64),
        timestamp_begin=first_time_id,
        seek_num_frames=torch.tensor([num_frames]),
        time_precision=0.02,
        time_precision_features=0.01,
        input_stride=2,
        prev_idx=0,
        idx=0,
        return_token_timestamps=False,
        decoder_input_ids=torch.zeros(1, 4),
    )
    return segments, int(offset)
