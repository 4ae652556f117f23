"""What a model sees with: images become rows, in place of embeddings of their tokens. Imports torch."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Sequence_
from functools import partial
from itertools import takewhile, zip_longest
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

_LOOKS_AHEAD = 2  # for each prompt: a look may end in the midst of a step, and the next one begins
_MOST_PROBLEMS = 64
_FIELD = "messages"  # where whoever asks has put them


class Seen(NamedTuple):
    """What stands in a step in place of embeddings: `rows` (places, width) at these rows of the step.
    Wider by what is added to these behind the first layers, where that is done (see deep_rows)."""

    places: list[int]
    rows: Tensor


class _Looked(NamedTuple):
    """(rows, width) of one image, and how long that took."""

    rows: Tensor
    took_s: float


class _Key(NamedTuple):
    """With the salt, for how soon an answer begins would tell who else has shown the image."""

    salt: str
    digest: str
    num_ids: int


def _key_of(image: PromptImage, sequence: Sequence) -> _Key:
    return _Key(sequence.request.kv_salt, image.digest, image.num_ids)


def _ahead(sequence: Sequence) -> list[PromptImage]:
    """The images of a prompt that are not read to their ends."""
    return [image for image in sequence.request.images if image.end > sequence.num_computed]


class Eyes:
    """The parts of a model in front of its text layers, and the rows of images that it saw last.

    `module` is transformers' model without those layers. Each image is looked at once, while its rows
    are kept: those that running sequences are about to read, and the last ones up to `kept_bytes`.
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
        for part in module.modules():
            part.register_forward_pre_hook(self._go_on)
        weights = next(self.module.parameters())
        self._is_beside = weights.device.type == "cpu"
        width: int = module.config.get_text_config().hidden_size
        num_wide = 1 + num_deep_of(module.config)
        self._row_bytes: int = num_wide * width * weights.element_size()
        self._inputs = inspect.signature(module.get_image_features).parameters.keys()

    def num_readable(self, sequence: Sequence, num_tokens: int) -> int:
        """How many of the next so many tokens of a sequence may be read: those in front of the first
        image that is not seen yet. A GPU is quick enough to be waited for: there it is all of them.

        Raises InvalidParameter for what is no image, or none as the prompt has room for, and what the
        model has raised.
        """
        start = sequence.num_computed
        for image in _ahead(sequence):
            if image.offset < start + num_tokens and not self._is_here(image, sequence):
                return max(0, image.offset - start)
        return num_tokens

    def attend(self, running: Iterable[Sequence]) -> None:
        """On a processor, look beside other work at what running sequences read next, the first ones'
        first, and at nothing else. Rows are kept until all of them have read them: what finds no room
        beside those waits until there is, but if there are none.
        """
        kept: set[_Key] = set()
        needed: set[_Key] = set()
        lacked: list[list[tuple[_Key, PromptImage]]] = []
        for sequence in running:
            ahead = [(_key_of(image, sequence), image) for image in _ahead(sequence)]
            here = list(takewhile(lambda one: one[0] in self._rows, ahead))
            needed.update(key for key, _ in ahead)
            kept.update(key for key, _ in here)
            lacked.append(ahead[len(here) :][:_LOOKS_AHEAD])
        self._make_room(kept)
        if self._is_beside:
            first_ones = [one for each in zip_longest(*lacked) for one in each if one is not None]
            self._looks.want(self._that_fit(dict(first_ones), kept))
            self._looks.leave_unless(needed)

    def _that_fit(
        self, lacked: dict[_Key, PromptImage], kept: set[_Key]
    ) -> Iterator[tuple[_Key, Callable[[], _Looked]]]:
        """Nobody overtakes who finds no room, or it would never find any."""
        begun = self._looks.begun()
        size_bytes = sum(self._rows[key].nbytes for key in kept) + sum(map(self._size_bytes, begun))
        for key, image in lacked.items():
            if key in self._rows or key in self._problems or key in begun:
                continue
            size_bytes += self._size_bytes(key)
            if size_bytes > max(self._kept_bytes, self._size_bytes(key)):
                return
            yield key, partial(self._looked, image)

    def _size_bytes(self, key: _Key) -> int:
        """Of rows that are not seen yet; marks count with them."""
        return key.num_ids * self._row_bytes

    def take_news(self, timeout_s: float = 0.0) -> None:
        """Take in what has been seen; waits so long for something."""
        self._take(self._looks.take_done(timeout_s))

    def has_news_of(self, sequence: Sequence) -> bool:
        """Whether the image that a sequence reads next is seen, or cannot be."""
        key = next((_key_of(image, sequence) for image in _ahead(sequence)), None)
        return key is None or key in self._rows or key in self._problems

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
                if not self._is_here(image, sequence):  # nobody has asked before, as in a proof
                    self._take([(_key_of(image, sequence), self._looked(image))])
                rows = self._rows[_key_of(image, sequence)][behind : behind + len(places)]
                found.append(Seen(places, rows))
        return found

    def forget_all(self) -> None:
        self._looks.forget_all()
        for kept in (self._rows, self._unpaid_s, self._problems):
            kept.clear()

    def _go_on(self, *_: Any) -> None:
        """In front of each part of the model, of which none takes long. Raises LookLeft."""
        self._looks.go_on()

    def _is_here(self, image: PromptImage, sequence: Sequence) -> bool:
        """Whether its rows are. On a GPU they are then. Raises as `num_readable`."""
        key = _key_of(image, sequence)
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

    def _take(self, ended: Sequence_[tuple[_Key, _Looked | BaseException]]) -> None:
        for key, looked in ended:
            if isinstance(looked, BaseException):
                self._problems[key] = looked
            else:
                self._rows[key] = looked.rows
                self._unpaid_s[key] = looked.took_s

    def _make_room(self, kept: set[_Key]) -> None:
        """Forget what was seen first, but for what is to be kept."""
        size_bytes = sum(rows.nbytes for rows in self._rows.values())
        for key in [key for key in self._rows if key not in kept]:
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
        _check_columns(image, inputs)
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
        stacked = (features.pooler_output, *(features.get("deepstack_features") or ()))
        rows = [torch.cat([one.reshape(-1, one.shape[-1]) for one in each]) for each in stacked]
        return torch.cat(rows, dim=1).cpu()

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


def num_deep_of(config: Any) -> int:
    """Behind how many of the first layers that read tokens rows of images are added."""
    return len(getattr(config.vision_config, "deepstack_visual_indexes", None) or ())


def _check_columns(image: PromptImage, inputs: dict[str, Tensor]) -> None:
    """Raise InvalidParameter where a prompt's positions are of another grid than the image's."""
    grids = inputs.get("image_grid_thw")
    columns = image.num_columns
    if grids is None and not columns:
        return
    _, height, width = (0, 0, 0) if grids is None else grids[0].tolist()
    if not columns or not height or height * columns != width * (image.num_ids // columns):
        problem = f"an image is {height} by {width} patches, and its place of another form"
        raise InvalidParameter(_FIELD, problem)


def read_image_processor(path: Path) -> Any:
    """By Pillow and numpy, which need no torchvision. Raises ModelRefused."""
    from transformers import AutoImageProcessor  # no model that reads texts only needs it

    try:
        return AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            path, backend="pil", local_files_only=True, trust_remote_code=False
        )
    except (ValueError, KeyError, OSError, TypeError, ImportError) as error:
        raise ModelRefused(f"How its images are prepared cannot be read: {error}") from error
