"""The process that opens a hostile file: `python -m retrieval.parsing.child`.

It bounds itself, reads one request, and writes one answer. Whatever a library raises becomes an answer
as well; what cannot be caught (a signal, the end of memory in C) is told by process.py.
"""

import gc
import os
import sys

from retrieval.parsing.cage import close_cage
from retrieval.parsing.errors import Unreadable
from retrieval.parsing.messages import Answer, Request, packed_answer, unpacked_request


def main() -> None:
    answers = _take_stdout()
    request = unpacked_request(sys.stdin.buffer.read())
    close_cage(request.limits, may_start=request.tesseract)
    answer = _answered(request)
    try:
        data = packed_answer(answer)
    except MemoryError:
        data = packed_answer(_out_of_memory())
    with os.fdopen(answers, "wb") as pipe:
        pipe.write(data)
    # Nothing is left to be tidied, and destructors of libraries have crashed after broken files.
    os._exit(0)


def _take_stdout() -> int:
    """The pipe for the answer; what libraries print goes nowhere."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return answers


def _answered(request: Request) -> Answer:
    # What reads files makes no cycles worth finding, but many objects.
    gc.disable()
    try:
        if request.task == "boxes":
            from retrieval.parsing.formats.pdf_boxes import boxes

            return boxes(request)
        if request.task == "picture":
            from retrieval.parsing.formats.picture import picture

            return picture(request)
        from retrieval.parsing.reading import read

        return read(request)
    except Unreadable as error:
        return error
    except MemoryError:
        return _out_of_memory()
    except Exception as error:  # a library's, of whatever kind: its words are not for a person
        return Unreadable("broken", f"The file is damaged ({type(error).__name__}).")


def _out_of_memory() -> Unreadable:
    return Unreadable(
        "out_of_memory",
        "Reading the file takes more memory than it may. Split it, or save it anew.",
    )


if __name__ == "__main__":
    main()
