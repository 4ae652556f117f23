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
from typing import Any


def hasten() -> None:
    """Patch Triton in this process, where TRITON_INTERPRET=1 has kernels interpreted."""
    if os.environ.get("TRITON_INTERPRET") != "1" or find_spec("triton") is None:
        return
    from triton.runtime import interpreter

    _check_no_sums_in_vain(interpreter)
    interpreter._patch_lang = _once_a_launch(interpreter)
    interpreter._get_np_dtype = _remembered(interpreter)


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


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"
    hasten()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
