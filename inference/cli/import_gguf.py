"""`python -m inference import FILE.gguf`: a model out of a GGUF file, here and for the site."""

import argparse
import sys
from pathlib import Path

from inference.errors import RequestError
from inference.gguf import translate
from inference.hub import is_name


def run(arguments: argparse.Namespace) -> int:
    file: Path = arguments.file.expanduser().absolute()
    if not file.is_file():
        raise RequestError(f"There is no file {file}.")
    name = arguments.name or f"gguf/{file.stem}"
    if not is_name(name):
        raise RequestError(f"'{name}' is no model name. Write ORG/MODEL behind the file's.")
    sys.stderr.write(f"Translating {file.name}: as bfloat16 it may be several times as large.\n")
    translate(file, arguments.models_dir / name)
    sys.stdout.write(f"{name}\n")
    return 0
