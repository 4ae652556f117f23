"""With `-n`: which process runs which tests. A file's tests stay in one, for they share a site.

Tests in a browser are for themselves, behind all others: Playwright's event loop goes on in the main
thread once it has begun, and no other can. xdist's own `--dist loadfile` knows no such tests, and takes
what has few tests last, which may take minutes.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_OF_PLAYWRIGHT = "[chromium"  # its plugin makes each test one of a browser
_USUAL_TIMEOUT_S = 180.0


class FileScheduling(LoadScopeScheduling):
    """Deals out files in the order in which their first tests were collected."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return f"{file} in a browser" if _OF_PLAYWRIGHT in nodeid else file


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Files that may take longest first, so that no process is left alone with one at the end; browser
    tests last, and of them the files with many tests first. All else stays as it is."""
    longest_s: dict[str, float] = {}
    num_tests: dict[str, int] = {}
    for item in items:
        file = item.path.as_posix()
        longest_s[file] = max(longest_s.get(file, _USUAL_TIMEOUT_S), _timeout_s(item))
        num_tests[file] = num_tests.get(file, 0) + 1

    def key(item: pytest.Item) -> tuple[bool, float, int]:
        file = item.path.as_posix()
        in_browser = "playwright" in getattr(item, "fixturenames", ())
        return in_browser, -longest_s[file], -num_tests[file] if in_browser else 0

    return sorted(items, key=key)


def _timeout_s(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark else 0.0
