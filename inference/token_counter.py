"""How many tokens an embedding model makes of a text, for whoever has no engine. No torch here."""

from dataclasses import dataclass

from inference.catalog import discover
from inference.config import EngineConfig
from inference.encoder_layout import read_encoder_layout
from inference.encoder_tokenizer import EncoderTokenizer
from inference.errors import UnknownModel


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """`window_tokens` is the longest text that the model reads whole; special tokens are counted."""

    tokenizer: EncoderTokenizer
    window_tokens: int

    @classmethod
    def load(cls, config: EngineConfig, model: str) -> "TokenCounter":
        """Reads files, some tens of milliseconds. Raises UnknownModel, ModelRefused."""
        spec = discover(config).get(model)
        if spec is None or spec.path is None:
            raise UnknownModel(model)
        layout = read_encoder_layout(spec.path)
        return cls(EncoderTokenizer.load(spec.path, layout), layout.window_tokens)

    def __call__(self, text: str) -> int:
        return self.tokenizer.count(text)
