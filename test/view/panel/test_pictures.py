"""Pictures of cameras become small files that a browser shows."""

import io
from typing import Any

import numpy as np
import PIL.Image
import pytest
from sensor_msgs.msg import CompressedImage, Image

pytest.importorskip("viser", reason="the page needs viser")

from crazyflow_ros.view.panel.camera_pictures import as_jpeg


def image(encoding: str, pixels: Any, kind: Any) -> Image:
    array = np.asarray(pixels, kind)
    message = Image(height=array.shape[0], width=array.shape[1], encoding=encoding)
    message.data = array.tobytes()
    return message


def pixels_of(message: Image) -> np.ndarray:
    content = as_jpeg(message)
    assert content is not None
    with PIL.Image.open(io.BytesIO(content)) as picture:
        assert picture.format == "JPEG"
        return np.asarray(picture.convert("RGB"), float)


def test_colours_are_kept() -> None:
    pixels = np.zeros((16, 32, 3))
    pixels[:, 16:] = (255, 128, 0)
    seen = pixels_of(image("rgb8", pixels, np.uint8))
    assert seen.shape == (16, 32, 3)
    np.testing.assert_allclose(seen[:, 24:], pixels[:, 24:], atol=16)


def test_depths_are_grey_and_white_where_there_is_nothing() -> None:
    depths = np.repeat([[0.0, 5.0, 10.0, np.inf, np.nan]], 16, axis=0).repeat(16, axis=1)
    seen = pixels_of(image("32FC1", depths, "<f4"))[8, 8::16, 0]
    np.testing.assert_allclose(seen, [0, 127, 255, 255, 0], atol=16)


def test_ids_of_a_segmentation_differ() -> None:
    ids = np.repeat([[-1, 0, 1, 2]], 16, axis=0).repeat(16, axis=1)
    colors = pixels_of(image("32SC1", ids, "<i4"))[8, 8::16]
    assert len(np.unique(colors.round(-1), axis=0)) == 4


def test_what_is_compressed_passes_if_it_is_a_small_jpeg() -> None:
    jpeg = b"\xff\xd8 and so on"
    assert as_jpeg(CompressedImage(format="rgb8; jpeg compressed", data=jpeg)) == jpeg
    for data in (b"\x89PNG", b"", b"\xff\xd8" + bytes(1 << 20)):
        assert as_jpeg(CompressedImage(data=data)) is None


@pytest.mark.parametrize(
    "message",
    [
        Image(height=4, width=4, encoding="rgb8", data=b"short"),
        Image(height=0, width=0, encoding="rgb8"),
        Image(height=1 << 20, width=1 << 20, encoding="rgb8"),
        Image(height=1, width=1, encoding="bayer_rggb8", data=b"x"),
    ],
)
def test_what_is_no_picture_is_left_out(message: Image) -> None:
    assert as_jpeg(message) is None
