"""Programs' images, drawn anew by another process."""

import pytest

from chat import drawn_images
from chat.api_errors import ApiError
from chat.drawn_images import drawn
from inference import Image, InvalidParameter
from tests.images import data_url, png


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_images, "_kept", drawn_images.Kept(2**20, len))


def asked(content: bytes) -> dict[str, object]:
    return {"role": "user", "content": "?", "images": (Image(data_url(content)),)}


async def test_they_come_back_as_jpegs() -> None:
    (message,) = await drawn([asked(png())])
    assert message["images"][0].url.startswith("data:image/jpeg;base64,")


async def test_what_is_no_image_is_the_callers_fault() -> None:
    with pytest.raises(InvalidParameter, match="an image cannot be read"):
        await drawn([asked(png()[:40])])


async def test_where_none_can_be_drawn_the_caller_may_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*asked: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(drawn_images, "jpeg_url", full)
    with pytest.raises(ApiError) as caught:
        await drawn([asked(png())])
    assert (caught.value.status, caught.value.code) == (503, "images_unavailable")
    assert caught.value.retry_after_s
