"""Which failures of a step are for want of memory, and what can be given back at once. Imports torch."""

import torch

_WORDS = ("can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")  # of torch's on CPU, and cuBLAS's


def is_out_of_memory(error: Exception) -> bool:
    """The device works on after these; nothing was computed wrongly."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)


def is_fault(error: Exception) -> bool:
    """The device's context is lost with all that is in it: whatever follows in this process fails."""
    return isinstance(error, torch.AcceleratorError) and not is_out_of_memory(error)


def give_back() -> None:
    """Give the driver what the allocator keeps for later."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()
