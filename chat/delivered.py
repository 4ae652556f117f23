"""How many tokens of an answer were delivered, by its events."""

from chat.events import Delta, Event, FromCache, Phase, ToolCall
from inference import about_tokens


class Delivered:
    """Hears the events of an answer as they come. Our own engine's tokens come with their text. Those of
    a model on another server nobody sees: `is_elsewhere` counts them by the text, about."""

    def __init__(self, *, is_elsewhere: bool = False) -> None:
        self.is_elsewhere = is_elsewhere
        self._num_ids = 0
        self._texts: list[str] = []
        self._is_given_again = False  # and no model was asked

    def hear(self, event: Event) -> None:
        match event:
            case Phase(phase="asking"):
                self.is_elsewhere = True
            case FromCache():
                self._is_given_again = True
            case Delta(text=text, ids=ids):
                self._num_ids += len(ids)
                self._texts.append(text)
            case ToolCall(name=name, arguments=arguments):
                self._texts.append(name + arguments)

    @property
    def num_tokens(self) -> int:
        if self._is_given_again or not self.is_elsewhere:
            return self._num_ids
        return about_tokens(*self._texts)
