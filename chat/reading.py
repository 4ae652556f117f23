"""How much an answer has read of its prompts, by its events."""

from dataclasses import replace

from chat.events import Delta, Event, Phase, Started, ToolCall


class Reading:
    """Hears the events of an answer as they come. Each of its turns reads a prompt of its own: those
    that are over have been read whole, as has one that something is written behind."""

    def __init__(self) -> None:
        self._over: list[Phase] = []
        self._now: Phase | None = None
        self._is_whole = False

    def hear(self, event: Event) -> None:
        match event:
            case Delta() | ToolCall():
                self._is_whole = True
            case Phase(phase="prefill" | "asking"):
                self._now = event
            case Started():
                if self._now is not None:
                    self._over.append(replace(self._now, done=self._now.total))
                self._now, self._is_whole = None, False

    @property
    def phase(self) -> Phase | None:
        """All turns as one, which is as the last of them is."""
        phases = [*self._over, *([self._now] if self._now else [])]
        if not phases:
            return None
        last = phases[-1]
        unread = 0 if self._is_whole else last.total - last.done
        total = sum(one.total for one in phases)
        cached = sum(one.cached for one in phases)
        return replace(last, done=total - unread, total=total, cached=cached)
