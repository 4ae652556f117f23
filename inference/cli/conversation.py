"""The turns of one chat in a terminal, and the prompts that they make."""

from inference.chat_messages import ChatMessage
from inference.fitting import fit_messages, prompt_room
from inference.tokenizer import ChatTokenizer


class Conversation:
    """Knows what was said; `system` is what the model is told first.

    `num_forgotten` counts the oldest messages that the last prompt had no room for.
    """

    def __init__(self, tokenizer: ChatTokenizer, system: str = "") -> None:
        self.system = system
        self.num_forgotten = 0
        self._tokenizer = tokenizer
        self._turns: list[ChatMessage] = []

    def clear(self) -> None:
        self._turns.clear()

    def ask(self, text: str, *, max_context_tokens: int, max_tokens: int | None) -> tuple[int, ...]:
        """Add a question: token ids of a prompt that leaves room for the answer.

        The oldest turns are left out where not all fit. Raises ContextTooLong, and nothing was asked,
        where the question alone does not.
        """
        question: ChatMessage = {"role": "user", "content": text}
        system = [{"role": "system", "content": self.system}] if self.system else []
        messages = [*system, *self._turns, question]
        shown, ids = fit_messages(
            messages,
            self._tokenizer.encode_chat,
            prompt_room(max_context_tokens, max_tokens),
            max_context_tokens=max_context_tokens,
        )
        self._turns.append(question)
        self.num_forgotten = len(messages) - len(shown)
        return ids

    def answer(self, text: str) -> None:
        """The answer to the last question. An empty one takes the question back."""
        if text:
            self._turns.append({"role": "assistant", "content": text})
        else:
            self._turns.pop()
