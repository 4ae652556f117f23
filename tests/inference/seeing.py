"""Requests to small models that see, in which images stand."""

from collections.abc import Sequence
from typing import Any

from inference.images import images_of
from inference.messages import GenerateRequest, SamplingParams
from inference.tokenizer import ChatTokenizer
from tests.inference.tiny_vision import asked, noise

NUM_TOKENS = 12
TALK = [
    asked("Look at \ufffc and then \ufffc, please.", noise(1), noise(2, 30, 70)),
    {"role": "assistant", "content": "Two pictures."},
    asked("And this?", noise(3, 64, 64)),
]


def request(
    tokenizer: ChatTokenizer, messages: Sequence[dict[str, Any]], name: str = "a", **more: Any
) -> GenerateRequest:
    prompt = tokenizer.encode_chat([*messages])
    params = SamplingParams(max_tokens=NUM_TOKENS, temperature=0.0, ignore_eos=True)
    images = tokenizer.place_images(prompt, images_of(messages))
    return GenerateRequest(name, "tiny", prompt, params, images=images, **more)
