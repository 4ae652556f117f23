"""What a model sees with: images become rows, in place of embeddings of their tokens. Imports torch."""

import inspect
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from inference.errors import InvalidParameter, ModelRefused
from inference.sequence import Sequence
from inference.vision.prompt_images import PromptImage
from inference.vision.sizes import BadImage, opened

KEPT_BYTES = 256 * 2**20
_FIELD = "messages"  # where whoever asks has put them


class Seen(NamedTuple):
    """What stands in a step in place of embeddings: `rows` (places, width) at these rows of the step."""

    places: list[int]
    rows: Tensor


class Eyes:
    """The parts of a model in front of its text layers, and the rows of images that it saw last.

    `module` is transformers' model without those layers. Each image is looked at once, while its rows
    are kept: up to `kept_bytes`, those that were used last.
    """

    def __init__(
        self, module: Any, processor: Any, image_token_id: int, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self.module: nn.Module = module
        self.image_token_id = image_token_id
        self.num_looks = 0
        self._processor = processor
        self._kept_bytes = kept_bytes
        self._size_bytes = 0
        self._rows: OrderedDict[tuple[str, int], Tensor] = OrderedDict()
        self._inputs = inspect.signature(module.get_image_features).parameters.keys()

    def look(self, sequence: Sequence, num_tokens: int) -> None:
        """See what the next so many tokens of a sequence show. Raises InvalidParameter for what is no
        image, or no such one as the prompt has room for."""
        for image in sequence.request.images:
            if image.end > sequence.num_computed and image.offset < (
                sequence.num_computed + num_tokens
            ):
                self._rows_of(image, sequence.request.prompt_ids)

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
                rows = self._rows_of(image, prompt_ids)[behind : behind + len(places)]
                found.append(Seen(places, rows))
        return found

    def forget_all(self) -> None:
        self._rows.clear()
        self._size_bytes = 0

    def _rows_of(self, image: PromptImage, prompt_ids: tuple[int, ...]) -> Tensor:
        key = (image.digest, image.num_ids)
        if key in self._rows:
            self._rows.move_to_end(key)
            return self._rows[key]
        rows = self._look(image.data)
        num_rows = prompt_ids[image.offset : image.end].count(self.image_token_id)
        if len(rows) != num_rows:
            problem = f"an image takes {len(rows)} tokens, and {num_rows} are kept for it"
            raise InvalidParameter(_FIELD, problem)
        self._rows[key] = rows
        self._size_bytes += rows.nbytes
        while self._size_bytes > self._kept_bytes and len(self._rows) > 1:
            self._size_bytes -= self._rows.popitem(last=False)[1].nbytes
        return rows

    @torch.inference_mode()
    def _look(self, data: bytes) -> Tensor:
        """(rows, width), on the host: a device's memory is for weights, keys and values."""
        try:
            with opened(data) as found:
                picture = found.convert("RGB")
        except BadImage as error:
            raise InvalidParameter(_FIELD, str(error)) from error
        except Exception as error:  # Pillow's readers raise whatever they meet
            raise InvalidParameter(_FIELD, "an image is damaged") from error
        self.num_looks += 1
        module: Any = self.module
        features = module.get_image_features(**self.inputs_of(picture))
        rows = torch.cat([one.reshape(-1, one.shape[-1]) for one in features.pooler_output])
        return rows.cpu()

    def inputs_of(self, picture: Any) -> dict[str, Tensor]:
        """What the model reads of an image of PIL's."""
        weights = next(self.module.parameters())
        prepared = self._processor(images=[picture], return_tensors="pt")
        inputs = {name: value for name, value in prepared.items() if name in self._inputs}
        inputs.pop("batch_num_images", None)  # as if it were the only one of its prompt: see docs
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
