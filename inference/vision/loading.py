"""A model that sees in two parts: one that writes, like any other, and its eyes. Imports torch."""

from pathlib import Path
from typing import Any

from torch import nn

from inference import attention
from inference.errors import ModelRefused
from inference.vision.eyes import Eyes, num_deep_of, read_image_processor
from inference.vision.layout import VisionLayout
from inference.vision.parts import TEXT_PARTS
from inference.vision.reading import reader_of


def parted(whole: Any, layout: VisionLayout, path: Path) -> tuple[nn.Module, Eyes]:
    """The layers of `whole` that read tokens, as the causal language model of their own architecture
    that the rest of the engine knows, over our cache; and what sees. Nothing is copied.

    Raises ModelRefused.
    """
    inner: Any = whole.model
    name = next(
        (one for one in TEXT_PARTS if isinstance(getattr(inner, one, None), nn.Module)), None
    )
    if name is None:
        raise ModelRefused("Of this model it is not known which layers read tokens.")
    body: Any = inner.get_submodule(name)
    writer = reader_of(body, num_deep_of(whole.config))
    writer.set_output_embeddings(whole.get_output_embeddings())
    if strays := [weight for weight, own in writer.named_parameters() if own.is_meta]:
        raise ModelRefused(f"Its layers that read tokens lack {strays[0]}.")
    writer.eval().set_attn_implementation(attention.NAME)
    setattr(inner, name, None)
    eyes = Eyes(inner, read_image_processor(path), layout)
    return writer, eyes
