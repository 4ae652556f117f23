"""What a model sees with: images become rows, in place of embeddings of their tokens. Imports torch."""

import inspect
from collections.abc import Sequence as Sequence_
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import torch
from PIL import Image as Picture
from torch import Tensor, nn

from inference.errors import InvalidParameter, ModelRefused
from inference.out_of_memory import give_back, is_out_of_memory
from inference.sequence import Sequence
from inference.vision.layout import VisionLayout
from inference.vision.looks import Looks
from inference.vision.prompt_images import PromptImage
from inference.vision.room import KEPT_BYTES
from inference.vision.rules import is_one_square
from inference.vision.sizes import BadImage, opened, upright
from inference.vision.tiles import limit_tiles

_MOST_PROBLEMS = 64
_FIELD = "messages"  # where whoever asks has put them


class Seen(NamedTuple):
    """What stands in a step in place of embeddings: `rows` (places, width) at these rows of the step."""

    places: list[int]
    rows: Tensor


class _Looked(NamedTuple):
    """(rows, width) of one image, and how long that took."""

    rows: Tensor
    took_s: float


_Key = tuple[str, int]


def _key_of(image: PromptImage) -> _Key:
    return image.digest, image.num_ids


class Eyes:
    """The parts of a model in front of its text layers, and the rows of images that it saw last.

    `module` is transformers' model without those layers. Each image is looked at once, while its rows
    are kept: up to `kept_bytes`, the last ones.
    """

    def __init__(
        self, module: Any, processor: Any, layout: VisionLayout, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self.module: nn.Module = module
        limit_tiles(module)
        self.image_token_id = layout.image_token_id
        self._prepared_with = dict(layout.prepared_with)
        self._rule = layout.rule
        self.num_looks = 0
        self._processor = processor
        self._kept_bytes = kept_bytes
        self._rows: dict[_Key, Tensor] = {}  # what was seen first comes first
        self._unpaid_s: dict[_Key, float] = {}
        self._problems: dict[_Key, BaseException] = {}
        self._looks: Looks[_Key, _Looked] = Looks()
        self._is_beside = next(self.module.parameters()).device.type == "cpu"
        self._inputs = inspect.signature(module.get_image_features).parameters.keys()

    def has_seen(self, sequence: Sequence, num_tokens: int) -> bool:
        """Whether all is seen that the next so many tokens of a sequence show. On a processor, what is
        not is looked at from now on, beside other work; a GPU is quick enough to be waited for.

        Raises InvalidParameter for what is no image, or none as the prompt has room for, and what the
        model has raised.
        """
        start, end = sequence.num_computed, sequence.num_computed + num_tokens
        shown = [one for one in sequence.request.images if one.offset < end and one.end > start]
        missing = [one for one in shown if not self._is_here(one, sequence)]
        for image in missing:
            self._looks.begin(_key_of(image), partial(self._looked, image))
        if not missing:
            self._make_room({_key_of(image) for image in shown})
        return not missing

    def has_news(self, timeout_s: float = 0.0) -> bool:
        """Whether something has been seen since this was last asked; waits so long for it."""
        return self._take(self._looks.take_done(timeout_s))

    def between(self, sequence: Sequence, start: int, end: int) -> list[Seen]:
        """What of a sequence's images stands from token `start` up to `end`, at places from 0 on."""
        found = []
        prompt_ids, token_id = sequence.request.prompt_ids, self.image_token_id
        for image in sequence.request.images:
            first, last = max(start, image.offset), min(end, image.end)
            if first >= last:
                continue
            places = [p - start for p in range(first, last) if prompt_ids[p] == token_id]
            if places:
                behind = prompt_ids[image.offset : first].count(token_id)
                if not self._is_here(image, sequence):  # it had to make room for another's
                    self._take([(_key_of(image), self._looked(image))])
                rows = self._rows[_key_of(image)][behind : behind + len(places)]
                found.append(Seen(places, rows))
        return found

    def forget_all(self) -> None:
        self._looks.forget_all()
        for kept in (self._rows, self._unpaid_s, self._problems):
            kept.clear()

    def _is_here(self, image: PromptImage, sequence: Sequence) -> bool:
        """Whether its rows are. On a GPU they are then. Raises as `has_seen`."""
        key = _key_of(image)
        if key not in self._rows and key not in self._problems and not self._is_beside:
            self._take([(key, self._looked(image))])
        if key in self._problems:
            raise self._problems.pop(key)
        if key not in self._rows:
            return False
        own_ids = sequence.request.prompt_ids[image.offset : image.end]
        num_rows, num_kept = len(self._rows[key]), own_ids.count(self.image_token_id)
        if num_rows != num_kept:
            problem = f"an image takes {num_rows} tokens, and {num_kept} are kept for it"
            raise InvalidParameter(_FIELD, problem)
        sequence.engine_s += self._unpaid_s.pop(key, 0.0)
        return True

    def _take(self, ended: Sequence_[tuple[_Key, _Looked | BaseException]]) -> bool:
        for key, looked in ended:
            if isinstance(looked, BaseException):
                self._problems[key] = looked
            else:
                self._rows[key] = looked.rows
                self._unpaid_s[key] = looked.took_s
        return bool(ended)

    def _make_room(self, needed: set[_Key]) -> None:
        """Forget what was seen first, but for what is needed now."""
        size_bytes = sum(rows.nbytes for rows in self._rows.values())
        for key in [key for key in self._rows if key not in needed]:
            if size_bytes <= self._kept_bytes:
                break
            size_bytes -= self._rows.pop(key).nbytes
            self._unpaid_s.pop(key, None)
        while len(self._problems) > _MOST_PROBLEMS:  # of requests that have gone
            del self._problems[next(iter(self._problems))]

    @torch.inference_mode()
    def _looked(self, image: PromptImage) -> _Looked:
        """On the host: a device's memory is for weights, keys and values."""
        started_s = monotonic()
        try:
            with opened(image.data) as found:
                picture = upright(found)
        except BadImage as error:
            raise InvalidParameter(_FIELD, str(error)) from error
        except Exception as error:  # Pillow's readers raise whatever they meet
            raise InvalidParameter(_FIELD, "an image is damaged") from error
        self.num_looks += 1
        inputs = self.inputs_of(picture, is_one_square(self._rule, image.num_ids))
        try:
            rows = self._rows_of(inputs)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            rows = None
        if rows is None:  # out of the handler, which holds on to what the attempt has made
            give_back()
            rows = self._rows_of(inputs)
        return _Looked(rows, monotonic() - started_s)

    def _rows_of(self, inputs: dict[str, Tensor]) -> Tensor:
        module: Any = self.module
        features = module.get_image_features(**inputs)
        rows = torch.cat([one.reshape(-1, one.shape[-1]) for one in features.pooler_output])
        return rows.cpu()

    def inputs_of(self, picture: Any, is_square: bool = False) -> dict[str, Tensor]:
        """What the model reads of an image of PIL's. `is_square`: as LLaVA-OneVision reads one beside
        others, of which its code wants to know how many there are."""
        weights = next(self.module.parameters())
        # The other one's pixels are nobody's.
        given = [[picture, Picture.new("RGB", (1, 1))]] if is_square else [picture]
        prepared = self._processor(images=given, return_tensors="pt", **self._prepared_with)
        inputs = {name: value for name, value in prepared.items() if name in self._inputs}
        if is_square:
            inputs = {name: value[:1] for name, value in inputs.items()}
        return {
            name: value.to(weights.device, weights.dtype if value.is_floating_point() else None)
            for name, value in inputs.items()
        }


def read_image_processor(path: Path) -> Any:
    """By Pillow and numpy, which need no torchvision. Raises ModelRefused."""
    from transformers import AutoImageProcessor  # no model that reads texts only needs it

    try:
        return AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            path, backend="pil", local_files_only=True, trust_remote_code=False
        )
    except (ValueError, KeyError, OSError, TypeError, ImportError) as error:
        raise ModelRefused(f"How its images are prepared cannot be read: {error}") from error
