"""llama.cpp where llama-cpp-python is installed: the same weights, quantised its own way.

Its library is driven by the smallest scheduler that keeps every slot busy: one token for each
sequence that decodes, and chunks of prompts with what is left of a batch. Its HTTP server is left out.
"""

import ctypes
import json
import tempfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from tests.inference.gguf_files import write_gguf

_BATCH_TOKENS = 512


class LlamaCpp:
    """Raises ImportError, in a sentence, where it is not installed."""

    def __init__(
        self, folder: Path, quantization: str, threads: int, slots: int, longest_tokens: int
    ) -> None:
        for module, package in (("llama_cpp", "llama-cpp-python"), ("gguf", "gguf")):
            if find_spec(module) is None:
                raise ImportError(f"{package} is not installed")
        import llama_cpp.llama_cpp as library

        self._library = library
        library.llama_backend_init()
        self._quiet = library.llama_log_callback(lambda level, text, data: None)
        library.llama_log_set(self._quiet, ctypes.c_void_p(0))
        with tempfile.TemporaryDirectory(prefix="vitrine-bench-") as temporary:
            file = Path(temporary) / "model.gguf"
            write_gguf(folder, file, quantization, has_tokenizer=False)
            settings = library.llama_model_default_params()
            settings.use_mmap = False  # the file is gone soon
            self._model = library.llama_model_load_from_file(str(file).encode(), settings)
        if not self._model:
            raise ImportError("llama.cpp does not load the GGUF")
        settings = library.llama_context_default_params()
        settings.n_ctx = slots * (longest_tokens + 1)
        settings.n_batch = settings.n_ubatch = _BATCH_TOKENS
        settings.n_seq_max = slots
        settings.n_threads = settings.n_threads_batch = threads
        settings.kv_unified = True
        self._context = library.llama_init_from_model(self._model, settings)
        self._vocab_size = json.loads((folder / "config.json").read_text())["vocab_size"]
        self._batch = library.llama_batch_init(_BATCH_TOKENS, 0, 1)

    def run(self, prompts: list[list[int]], num_outputs: list[int]) -> list[list[float]]:
        memory = self._library.llama_get_memory(self._context)
        self._library.llama_memory_clear(memory, True)
        sequences = [
            _Sequence(slot, list(prompt), number)
            for slot, (prompt, number) in enumerate(zip(prompts, num_outputs, strict=True))
        ]
        while running := [s for s in sequences if len(s.token_s) < s.num_output]:
            self._step(running)
        return [sequence.token_s for sequence in sequences]

    def logits(self, token_ids: list[int]) -> Any:
        """Behind each token of one text that fits a batch: float32 (tokens, vocab)."""
        self._library.llama_memory_clear(self._library.llama_get_memory(self._context), True)
        batch = self._batch
        batch.n_tokens = len(token_ids)
        for row, token_id in enumerate(token_ids):
            batch.token[row], batch.pos[row], batch.logits[row] = token_id, row, True
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
        code = self._library.llama_decode(self._context, batch)
        assert code == 0, f"llama_decode says {code}"
        return np.stack([self._logits_of(row).copy() for row in range(len(token_ids))])

    def close(self) -> None:
        self._library.llama_batch_free(self._batch)
        self._library.llama_free(self._context)
        self._library.llama_model_free(self._model)

    def _step(self, running: list["_Sequence"]) -> None:
        """One batch: who decodes comes first."""
        batch, rows = self._batch, {}
        batch.n_tokens = 0
        for sequence in sorted(running, key=lambda s: len(s.token_ids) - s.num_computed):
            end = min(
                len(sequence.token_ids), sequence.num_computed + _BATCH_TOKENS - batch.n_tokens
            )
            for position in range(sequence.num_computed, end):
                row = batch.n_tokens
                batch.token[row] = sequence.token_ids[position]
                batch.pos[row] = position
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = sequence.slot
                is_last = position == len(sequence.token_ids) - 1
                batch.logits[row] = is_last
                if is_last:
                    rows[row] = sequence
                batch.n_tokens += 1
            sequence.num_computed = end
        code = self._library.llama_decode(self._context, batch)
        assert code == 0, f"llama_decode says {code}"
        for row, sequence in rows.items():
            sequence.token_ids.append(int(self._logits_of(row).argmax()))
            sequence.token_s.append(monotonic())

    def _logits_of(self, row: int) -> Any:
        """(vocab,), until the next batch."""
        logits = self._library.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(logits, shape=(self._vocab_size,))


@dataclass(slots=True)
class _Sequence:
    slot: int
    token_ids: list[int]
    num_output: int
    num_computed: int = 0
    token_s: list[float] = field(default_factory=list)
