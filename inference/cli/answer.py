"""One answer on its way to the screen."""

from inference.cli.screen import Screen
from inference.parsing import AnswerParser, Reasoning, Segment, Text


class Answer:
    """Shows what a model writes and keeps its text.

    Thoughts are dim on a terminal and left out of a pipe.
    """

    def __init__(self, parser: AnswerParser, screen: Screen) -> None:
        self._parser = parser
        self._screen = screen
        self._text: list[str] = []
        self._has_aside = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    def feed(self, text: str) -> None:
        self._show(self._parser.feed(text))

    def finish(self) -> None:
        """Show what was held back, and end the line."""
        self._show(self._parser.finish())
        self._screen.write("\n")

    def _show(self, segments: list[Segment]) -> None:
        for segment in segments:
            match segment:
                case Text(text):
                    self._show_text(text)
                case Reasoning(text):
                    self._show_aside(text)

    def _show_text(self, text: str) -> None:
        if self._has_aside and not self._text:
            self._screen.write("\n\n")
        self._text.append(text)
        self._screen.write(text)

    def _show_aside(self, text: str) -> None:
        if self._screen.is_terminal:
            self._has_aside = True
            self._screen.write(text, is_dim=True)
