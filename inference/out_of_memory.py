"""Which failures are for want of memory, what can be given back then at once, and which are the device's
end. Imports torch."""

import torch

_WORDS = ("can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")  # of torch's on CPU, and cuBLAS's
_CAPTURE = "captur"  # "operation not permitted when stream is capturing", "... during capture"


def is_out_of_memory(error: Exception) -> bool:
    """The device works on after these; nothing was computed wrongly."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)


def is_fault(error: Exception) -> bool:
    """The device's context is lost with all that is in it: whatever follows in this process fails.

    torch says so of its own calls. Triton and the libraries say something of their own, and a capture
    that fails is told alike but has lost nothing: then the device is asked.
    """
    if is_out_of_memory(error):
        return False
    is_told = isinstance(error, torch.AcceleratorError) and _CAPTURE not in str(error)
    return is_told or not _answers()


def _answers() -> bool:
    """What has lost its context fails at everything from then on."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def give_back() -> None:
    """Give the driver what the allocator keeps for later."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.empty_cache()
