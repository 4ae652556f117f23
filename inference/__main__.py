"""`python -m inference COMMAND` (chat, bench, models, import): the engine, without the web site."""

import logging
import os
import sys

from inference.cli.arguments import parse
from inference.errors import EngineError, RequestError

FAILED, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes: it went wrong; what was asked for is wrong, as in argparse; Ctrl-C, as in shells."""


def main() -> int:
    arguments = parse()
    # The engine logs what the commands below tell anyway, in a sentence of their own.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    logging.basicConfig(level=logging.WARNING if arguments.verbose else logging.CRITICAL)
    try:
        return int(arguments.run(arguments))
    except EngineError as error:
        sys.stderr.write(f"{error}\n")
        return WRONG if isinstance(error, RequestError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
