"""Which process of `-n` runs which tests."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.scheduling import FileScheduling, in_order


class Worker:
    """What a scheduler sees of a process of tests."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Log:
    def __call__(self, *words: object) -> None:
        pass

    loadscopesched = property(lambda self: self)


def dealt_out(tests: list[str]) -> list[list[str]]:
    """By process, where two work equally fast."""
    option = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(option=option, getvalue=lambda name: ["popen", "popen"])
    scheduler = FileScheduling(config, Log())  # type: ignore[arg-type]
    workers: list[Any] = [Worker(), Worker()]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    done = 0
    while any(done < len(worker.given) for worker in workers):
        for worker in workers:
            if done < len(worker.given):
                scheduler.mark_test_complete(worker, worker.given[done])
        done += 1
    return [[tests[index] for index in worker.given] for worker in workers]


def test_tests_of_a_file_stay_in_one_process_and_files_in_their_order() -> None:
    first, second, third = (f"tests/chat/test_{name}.py" for name in ("few", "many", "some"))
    few = [f"{first}::test_{n}" for n in range(2)]
    many = [f"{second}::test_{n}[a::b]" for n in range(9)]
    some = [f"{third}::test_{n}" for n in range(3)]
    one, other = dealt_out([*few, *many, *some])
    assert one == [*few, *some]
    assert other == many


def test_tests_in_a_browser_do_not_bring_those_of_their_file_with_them() -> None:
    plain = ["tests/a.py::test_1", "tests/a.py::test_2", "tests/a.py::test_3"]
    last = ["tests/a.py::test_4[chromium]", "tests/a.py::test_5[chromium-390-dark]"]
    assert sorted(dealt_out([*plain, "tests/b.py::test_6", *last])) in (
        [plain, ["tests/b.py::test_6", *last]],
        [[*plain, *last], ["tests/b.py::test_6"]],
    )


def item(file: str, *fixtures: str, timeout_s: float | None = None) -> Any:
    mark = timeout_s and SimpleNamespace(args=(timeout_s,))
    return SimpleNamespace(
        path=Path(file), fixturenames=fixtures, get_closest_marker=lambda name: mark
    )


def test_what_may_take_minutes_comes_first_and_browsers_last() -> None:
    plain, quick = item("plain.py"), item("plain.py", timeout_s=20)
    page, more, other = (item(f"{name}.py", "playwright") for name in ("few", "many", "many"))
    slow, beside = item("slow.py", timeout_s=600), item("slow.py")
    found = in_order([page, plain, more, beside, other, slow, quick])
    assert found == [beside, slow, plain, quick, more, other, page]
