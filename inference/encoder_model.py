"""Runs an encoder: a padded batch of inputs to one row of numbers for each. Knows no queue."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from inference.adapters import Adapters
from inference.encode_messages import EncoderInput
from inference.encoder_layout import EncoderLayout
from inference.int8_linear import Int8Linear
from inference.pooling import pooled, unit

_LEAST_WORK = 3_000_000_000
"""Products of a weight and a token. For less, one thread is quicker than several: they would wait for
one another after each of some hundred small operations, and hold the cores that the server needs."""


PACKED_TOKENS = 64
"""Shorter inputs share rows of so many, where a model can: sentences differ in length, and padding them
to the longest would be a third of the work."""


class EncoderModel:
    """An embedding model, a classifier or a reranker with its weights.

    `modes` pool an embedding model's output, `dense` stand behind them; `adapters` are none at first.
    Padding is always behind a text, where causal attention does not look and a mask hides it from other
    attention.
    """

    def __init__(
        self,
        model: nn.Module,
        layout: EncoderLayout,
        *,
        modes: tuple[str, ...] = (),
        dense: Sequence[nn.Module] = (),
    ) -> None:
        self.model = model
        self.layout = layout
        self.dtype = next(model.parameters()).dtype
        self.is_quantized = any(isinstance(one, Int8Linear) for one in model.modules())
        self._modes = modes
        self._dense = nn.Sequential(*dense)
        self._takes_types = "token_type_ids" in inspect.signature(model.forward).parameters
        pad_id = getattr(model.config, "pad_token_id", None)
        self._pad_id = pad_id if isinstance(pad_id, int) and pad_id >= 0 else 0
        # Classifiers made of decoders find their last token by what is padding: they have to know.
        self.can_batch = bool(self._modes) or isinstance(pad_id, int)
        # Others count positions in their own way, take no mask of pairs, or pool by what pads.
        self.can_pack = (
            getattr(model.config, "model_type", "") == "bert"
            and self._modes == ("mean",)
            and "position_ids" in inspect.signature(model.forward).parameters
        )
        self._num_weights = sum(map(_num_weights, model.modules()))
        self.adapters = Adapters()
        self._entered = "", 0  # an adapter and a forward's rows
        self._between: Callable[[], None] | None = None
        for layer in _layers(model):
            layer.register_forward_pre_hook(self._begin_layer)

    @torch.inference_mode()
    def encode(
        self,
        inputs: Sequence[EncoderInput],
        between: Callable[[], None] | None = None,
        adapter: str = "",
    ) -> Tensor:
        """(inputs, width) in float32: vectors, probabilities of labels, or logits of relevance.

        `between` is called before each layer, and may encode something else meanwhile.
        """
        outer, self._between = (self._between, self._entered), between
        try:
            return self._encode(inputs, adapter)
        finally:
            self._between, entered = outer
            self._enter(*entered)

    def _enter(self, adapter: str, num_rows: int) -> None:
        self._entered = adapter, num_rows
        self.adapters.enter_one(adapter, num_rows)

    def _begin_layer(self, *_: object) -> None:
        if self._between is not None:
            self._between()

    def _encode(self, inputs: Sequence[EncoderInput], adapter: str) -> Tensor:
        if self.can_pack and len(inputs) > 1 and max(map(len, inputs)) <= PACKED_TOKENS:
            return self._encode_packed(inputs, adapter)
        ids = _padded([torch.tensor(i.ids) for i in inputs], self._pad_id)
        lengths = torch.tensor([len(i) for i in inputs])
        mask = torch.arange(ids.shape[1]) < lengths.unsqueeze(1)  # (inputs, tokens)
        arguments = {"input_ids": ids, "attention_mask": mask.long()}
        if self._takes_types:
            arguments["token_type_ids"] = _padded([_types(i) for i in inputs], 0)
        self._enter(adapter, ids.numel())
        with _threads_for(ids.numel() * self._num_weights):
            output = self.model(**arguments)
        if self.layout.kind == "embedding":
            return self._vectors(output.last_hidden_state, mask)
        return self._scores(output.logits.float())

    def _encode_packed(self, inputs: Sequence[EncoderInput], adapter: str) -> Tensor:
        """Several inputs in a row, each of which sees itself alone."""
        rows = _packed([len(i) for i in inputs])
        ids = _padded([torch.cat([torch.tensor(inputs[n].ids) for n in row]) for row in rows], 0)
        positions = _padded(
            [torch.cat([torch.arange(len(inputs[n])) for n in row]) for row in rows], 0
        )
        types = _padded([torch.cat([_types(inputs[n]) for n in row]) for row in rows], 0)
        # Padding is an input of its own, which nobody asks for.
        owners = _padded(
            [torch.cat([torch.full((len(inputs[n]),), n) for n in row]) for row in rows],
            len(inputs),
        )
        is_same = owners.unsqueeze(1) == owners.unsqueeze(2)  # (rows, tokens, tokens)
        mask = torch.zeros(is_same.shape, dtype=self.dtype)
        mask.masked_fill_(~is_same, torch.finfo(self.dtype).min)
        self._enter(adapter, ids.numel())
        with _threads_for(ids.numel() * self._num_weights):
            output = self.model(
                input_ids=ids,
                attention_mask=mask.unsqueeze(1),
                position_ids=positions,
                token_type_ids=types,
            )
        hidden = output.last_hidden_state.float().flatten(0, 1)
        sums = hidden.new_zeros(len(inputs) + 1, hidden.shape[-1])
        sums.index_add_(0, owners.flatten(), hidden)
        lengths = torch.tensor([len(i) for i in inputs]).unsqueeze(1)
        vectors: Tensor = self._dense(sums[:-1] / lengths)
        return unit(vectors) if self.layout.is_normalized else vectors

    def _vectors(self, hidden: Tensor, mask: Tensor) -> Tensor:
        vectors: Tensor = self._dense(pooled(hidden, mask, self._modes))
        return unit(vectors) if self.layout.is_normalized else vectors

    def _scores(self, logits: Tensor) -> Tensor:
        """logits: (inputs, labels)"""
        if self.layout.kind == "reranker":
            return logits
        return logits.sigmoid() if self.layout.is_multi_label else logits.softmax(-1)


def _packed(lengths: Sequence[int]) -> list[list[int]]:
    """Indices of inputs in rows of at most PACKED_TOKENS: the longest first, each into the first row
    with room for it."""
    rows: list[list[int]] = []
    left: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        place = next((at for at, room in enumerate(left) if room >= lengths[index]), len(rows))
        if place == len(rows):
            rows.append([])
            left.append(PACKED_TOKENS)
        rows[place].append(index)
        left[place] -= lengths[index]
    return rows


@contextmanager
def _threads_for(work: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(before if work >= _LEAST_WORK else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _layers(model: nn.Module) -> list[nn.Module]:
    """The longest list of modules."""
    lists = [list(each) for each in model.modules() if isinstance(each, nn.ModuleList)]
    return max(lists, key=len, default=[])


def _num_weights(module: nn.Module) -> int:
    """Of a linear layer. Embeddings are looked up, and cost next to nothing."""
    if isinstance(module, nn.Linear | Int8Linear):
        return module.in_features * module.out_features
    return 0


def _padded(rows: list[Tensor], value: int) -> Tensor:
    return pad_sequence(rows, batch_first=True, padding_value=value).long()


def _types(text: EncoderInput) -> Tensor:
    return torch.tensor(list(text.type_ids) or [0] * len(text))
