"""Loads the model that guesses for another one, or says why it does not. Imports torch.

A model without its draft model writes the same answers, only more slowly. So whatever is wrong with
the small one, the large one is served, and the reason stands in the log and in its `ModelInfo`.
"""

import logging
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer

from inference.catalog import discover
from inference.config import EngineConfig
from inference.draft_model import DraftModel
from inference.errors import ModelError, ModelRefused
from inference.kinds import KIND_NAMES, read_kind
from inference.kv_cache import SlabKV
from inference.loader import (
    LoadedModel,
    Progress,
    bits_of,
    load_model,
    read_model_config,
    read_rust_tokenizer,
)
from inference.model_runner import ModelRunner
from inference.slot_states import has_states

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Draft:
    """The draft model that is configured, if one is, and either what was loaded or what is wrong."""

    name: str = ""
    loaded: LoadedModel | None = None
    problem: str = ""

    def give_up(self, model: str, error: Exception) -> None:
        """Say why `model` runs without it."""
        self.loaded = None
        self.problem = f"{model} runs without its draft model {self.name}. {error}"
        logger.warning("%s", self.problem)


def load_draft(
    loaded: LoadedModel,
    tokenizer: Tokenizer,
    config: EngineConfig,
    progress: Progress,
    dtype: torch.dtype,
) -> Draft:
    """What is configured for a loaded model; nothing while guessing is switched off."""
    draft = Draft(dict(config.draft_models).get(loaded.info.name, ""))
    if not draft.name or not config.max_num_drafting:
        return Draft()
    try:
        draft.loaded = _load(draft.name, loaded, tokenizer, config, progress, dtype)
    except ModelError as error:
        draft.give_up(loaded.info.name, error)
    except Exception as error:
        logger.exception("the draft model %s does not load", draft.name)
        draft.give_up(loaded.info.name, error)
    return draft


def _load(
    name: str,
    loaded: LoadedModel,
    tokenizer: Tokenizer,
    config: EngineConfig,
    progress: Progress,
    dtype: torch.dtype,
) -> LoadedModel:
    """Raises ModelError, before anything large is read where that is possible."""
    if has_states(loaded.config):
        raise ModelRefused(
            f"{loaded.info.name} keeps a state that cannot go back behind a wrong guess."
        )
    spec = discover(config).get(name)
    if spec is None or spec.path is None:
        raise ModelRefused(f"There is no model '{name}' on this machine.")
    if spec.base:
        raise ModelRefused(f"It is an adapter of {spec.base}.")
    if (kind := read_kind(spec.path)) != "chat":
        raise ModelRefused(f"It is {KIND_NAMES[kind]}.")
    if has_states(read_model_config(spec.path)):
        raise ModelRefused("It keeps a state that cannot go back behind a wrong guess.")
    _check_vocabulary(tokenizer, read_rust_tokenizer(spec.path))
    progress("loading the draft model", 0.85)
    small = load_model(
        name, spec.path, lambda phase, _: progress(f"draft model: {phase}", 0.88), dtype,
        bits=bits_of(config.dtype),
    )  # fmt: skip
    _check_ends(loaded, small)
    return small


def _check_vocabulary(tokenizer: Tokenizer, small: Tokenizer) -> None:
    """Raise ModelRefused unless each id that both know is the same token."""
    by_id, small_by_id = (
        {number: token for token, number in each.get_vocab(with_added_tokens=True).items()}
        for each in (tokenizer, small)
    )
    num_shared = 1 + min(max(by_id, default=-1), max(small_by_id, default=-1))
    for number in range(num_shared):
        token, other = by_id.get(number), small_by_id.get(number)
        if token != other:
            raise ModelRefused(
                f"It has another vocabulary: its token {number} is {other!r} and not {token!r}."
            )
    if not num_shared:
        raise ModelRefused("It has another vocabulary.")


def _check_ends(loaded: LoadedModel, small: LoadedModel) -> None:
    """Raise ModelRefused where answers end in other tokens: it was made for other conversations.

    Lists of ends differ between sizes of one family; one in common is enough.
    """
    if loaded.eos_ids.isdisjoint(small.eos_ids) and (loaded.eos_ids or small.eos_ids):
        theirs, ours = sorted(small.eos_ids), sorted(loaded.eos_ids)
        raise ModelRefused(f"It ends an answer by the tokens {theirs} and not by {ours}.")


def make_draft_model(
    loaded: LoadedModel, small: LoadedModel, most_bytes: int, num_sequences: int
) -> DraftModel:
    """A draft model whose cache holds so many sequences, or what fits into so many bytes."""
    max_context_tokens = min(loaded.info.max_context_tokens, small.info.max_context_tokens)
    capacity_tokens = min(
        num_sequences * max_context_tokens,
        most_bytes // max(1, small.footprint.kv_bytes_per_token),
    )
    kv = SlabKV(capacity_tokens, min(max_context_tokens, capacity_tokens))
    return DraftModel(
        ModelRunner(small.model, kv),
        eos_ids=loaded.eos_ids,
        vocab_size=loaded.config.get_text_config().vocab_size,
        own_vocab_size=small.config.get_text_config().vocab_size,
    )
