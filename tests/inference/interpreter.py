"""Triton's interpreter without what it does in vain: kernels compute the same in half the time.

To be called before the first kernel runs. Also a command that runs another in this interpreter:
`python -m tests.inference.interpreter MODULE ARGUMENTS...`
"""

import os
import runpy
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from inspect import ismodule
from math import prod
from typing import Any

import numpy as np


def hasten() -> None:
    """Patch Triton in this process, where TRITON_INTERPRET=1 has kernels interpreted."""
    if os.environ.get("TRITON_INTERPRET") != "1" or find_spec("triton") is None:
        return
    from triton.runtime import interpreter

    _check_no_sums_in_vain(interpreter)
    interpreter._patch_lang = _once_a_launch(interpreter)
    interpreter._get_np_dtype = _remembered(interpreter)
    interpreter._convert_float = _cut_off(interpreter)
    interpreter.tl.tensor.__init__ = _made(interpreter.tl.core)


def _check_no_sums_in_vain(interpreter: Any) -> None:
    """Each sum of integers is done twice more in 64 bits and compared, for an assertion that is not
    made without `debug`."""
    options = interpreter.interpreter_builder.options
    assert not options.debug
    interpreter.interpreter_builder.options = replace(options, sanitize_overflow=False)


def _once_a_launch(interpreter: Any) -> Any:
    """A launch puts the interpreter's functions into `triton.language`, and then each call of a function
    by the kernel does so again, some milliseconds long, and leaves them there."""
    patch_lang = interpreter._patch_lang
    language = interpreter.tl
    in_place: set[int] = set()

    @cache
    def modules_of(fn: Any) -> frozenset[int]:
        return frozenset(
            id(value)
            for value in fn.__globals__.values()
            if ismodule(value) and value in (language, language.core)
        )

    class Scope:
        def __init__(self, fn: Any) -> None:
            self.modules = modules_of(fn) - in_place
            if self.modules or not modules_of(fn):  # of none it raises
                self.inner = patch_lang(fn)
                in_place.update(self.modules)

        def restore(self) -> None:
            if self.modules:
                self.inner.restore()
                in_place.clear()  # classes are in both modules

    return Scope


def _remembered(interpreter: Any) -> Any:
    """It makes a table of all types each time that it looks one up."""
    get_np_dtype = interpreter._get_np_dtype
    language = interpreter.tl
    known: dict[str, Any] = {}

    def remembered(dtype: Any) -> Any:
        if isinstance(dtype, language.block_type):
            dtype = dtype.element_ty
        if isinstance(dtype, language.pointer_type):
            return get_np_dtype(dtype)
        if dtype.name not in known:
            known[dtype.name] = get_np_dtype(dtype)
        return known[dtype.name]

    return remembered


def _cut_off(interpreter: Any) -> Any:
    """It takes float32 apart to make bfloat16 of it, and back, though one is the other's upper half."""
    convert_float = interpreter._convert_float
    language = interpreter.tl

    def cut_off(data: Any, given: Any, wanted: Any, rounding: Any) -> Any:
        if rounding is None and given == language.bfloat16 and wanted == language.float32:
            return data.view(np.uint16).astype(np.uint32) << 16
        if rounding is None and given == language.float32 and wanted == language.bfloat16:
            return (data.view(np.uint32) >> 16).astype(np.uint16)
        return convert_float(data, given, wanted, rounding)

    return cut_off


def _made(core: Any) -> Any:
    """Each result makes a tuple of its shape, and a type of that tuple. There are few shapes."""

    @cache
    def kept(*shape: int) -> tuple[Any, Any]:
        return core.constexpr(prod(shape)), core.tuple([core.constexpr(size) for size in shape])

    def made(self: Any, handle: Any, type: Any) -> None:
        self.handle = handle
        self.type = type
        self.dtype = type.scalar
        self.numel, self.shape = kept(*type.shape) if type.is_block() else kept()

    return made


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"
    hasten()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
