"""Stories of a cache: sequences come, are computed, are shared, and go, in any order."""

from abc import ABC, abstractmethod

from hypothesis import strategies as st

from inference.kv import KVCache

ROOTS = [[7] * 40, [7] * 16 + [8] * 60, list(range(90))]


class Story(ABC):
    """Those that run, by name, with their tokens and their salt."""

    def __init__(self, kv: KVCache) -> None:
        self.kv = kv
        self.running: dict[str, tuple[list[int], str]] = {}
        self.num_cached = 0

    @abstractmethod
    def compute(self, name: str, token_ids: list[int], num_cached: int, chunk: int) -> None:
        """Write what is not cached, and see that the cache gives back what was written."""

    def come(self, name: str, token_ids: list[int], salt: str, chunk: int = 64) -> None:
        num_cached = self.kv.attach(name, token_ids, salt)
        assert num_cached < len(token_ids), "one is left to compute"
        if not self.kv.reserve(name, len(token_ids)):
            self.kv.release(name, token_ids[:num_cached], salt)
            return
        self.num_cached += num_cached
        self.running[name] = (token_ids, salt)
        self.compute(name, token_ids, num_cached, chunk)

    def go(self, name: str, *, is_reusable: bool) -> None:
        token_ids, salt = self.running.pop(name)
        self.kv.release(name, token_ids if is_reusable else (), salt)


def play(story: Story, data: st.DataObject) -> None:
    """Any story, whose books are checked at every turn; in the end all have gone."""
    for number in range(data.draw(st.integers(1, 25))):
        if story.running and data.draw(st.booleans()):
            name = data.draw(st.sampled_from(sorted(story.running)))
            token_ids, salt = story.running[name]
            if data.draw(st.booleans()):
                story.kv.share(name, token_ids, salt)
            else:
                story.go(name, is_reusable=data.draw(st.booleans()))
        else:
            root = data.draw(st.sampled_from(ROOTS))
            cut = data.draw(st.integers(1, len(root)))
            tail = data.draw(st.lists(st.integers(0, 3), max_size=30))
            salt = data.draw(st.sampled_from(("", "bob")))
            story.come(str(number), root[:cut] + tail, salt, data.draw(st.sampled_from((16, 64))))
        story.kv.check()
    for name in list(story.running):
        story.go(name, is_reusable=False)
    story.kv.check()
    assert story.kv.used_tokens == 0
