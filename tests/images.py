"""Images as tests send them."""

import base64
import io

from PIL import Image


def png(colour: str = "red", size_px: tuple[int, int] = (8, 8)) -> bytes:
    return _encoded(colour, size_px, "PNG")


def jpeg(colour: str = "blue", size_px: tuple[int, int] = (8, 8)) -> bytes:
    return _encoded(colour, size_px, "JPEG")


def _encoded(colour: str, size_px: tuple[int, int], kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size_px, colour).save(file, kind)
    return file.getvalue()


def data_url(content: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
