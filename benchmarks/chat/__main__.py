"""`python -m benchmarks.chat`: what the chat costs around the model.

`store`: pages over a million messages; `relay`: tokens from the engine to sockets; `page`: what
Chromium takes to load the chat and to open a long one. All three without a name.
"""

import argparse
from collections.abc import Callable

from benchmarks import table
from benchmarks.chat import page, relay, store

Result = list[table.Row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="store, relay or page; all of them without")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=100, help="of each kind to the store")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=3, help="of all streams")
    arguments = parser.parse_args()
    parts: dict[str, tuple[str, Callable[[], Result]]] = {
        "relay": (
            "From a scripted source to browser sockets",
            lambda: relay.measure(arguments.streams, arguments.rounds),
        ),
        "page": ("In Chromium", page.measure),
        "store": (
            f"Over {arguments.messages:,} messages",
            lambda: store.measure(arguments.messages, arguments.requests),
        ),
    }
    if unknown := set(arguments.parts) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    found = {"machine": table.machine()}
    for name in arguments.parts or parts:
        title, measure = parts[name]
        found[name] = measure()
        table.show(title, found[name])
    table.save("chat", found)


if __name__ == "__main__":
    main()
