"""An engine whose language models say what a test has written; the tokenizer is a real one."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from math import log
from pathlib import Path

from inference import (
    ChatTokenizer,
    Failed,
    Finished,
    GenerateRequest,
    Timings,
    TokenLogprob,
    Tokens,
    Update,
    Usage,
)

Probabilities = dict[str, float]
Answer = tuple[str, Probabilities] | Failed


@dataclass
class ScriptedEngine:
    """`answers` by what stands in the prompt; of several, the last. Each is what is said, and in place
    of which word something else could have been said, by the probabilities of all that could. `asked`
    are the requests so far."""

    path: Path
    answers: Mapping[str, Answer]
    context: int = 4096
    asked: list[GenerateRequest] = field(default_factory=list)

    def is_upstream(self, model: str) -> bool:
        return False

    async def tokenizer(self, model: str) -> ChatTokenizer:
        self.words = ChatTokenizer.load(self.path)
        return self.words

    def context_tokens(self, model: str) -> int:
        return self.context

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Update, None]:
        self.asked.append(request)
        prompt = self.prompt(-1)
        answer = [answer for key, answer in self.answers.items() if key in prompt][-1]
        if isinstance(answer, Failed):
            yield answer
            return
        text, probabilities = answer
        steps = self._steps(text, probabilities)
        for step in steps:
            piece = self.words.decode([step.token_id])
            yield Tokens(piece, (step.token_id,), 1, logprobs=(step,))
        yield Finished("stop", Usage(), Timings())

    def prompt(self, at: int) -> str:
        """What was asked in a request, as text."""
        return self.words.decode(list(self.asked[at].prompt_ids))

    def _steps(self, text: str, probabilities: Probabilities) -> list[TokenLogprob]:
        word = next((word for word in probabilities if word in text), None)
        before, _, behind = text.rpartition(word) if word else (text, "", "")
        steps = [self._sure(i) for i in self.words.encode(before)]
        if word:
            first = {self.words.encode(one)[0]: p for one, p in probabilities.items()}
            top = tuple((i, log(p)) for i, p in sorted(first.items(), key=lambda pair: -pair[1]))
            ids = self.words.encode(word)
            steps.append(TokenLogprob(ids[0], log(probabilities[word]), top))
            steps += [self._sure(i) for i in ids[1:]]
        return steps + [self._sure(i) for i in self.words.encode(behind)]

    def _sure(self, token_id: int) -> TokenLogprob:
        return TokenLogprob(token_id, 0.0, ((token_id, 0.0),))
