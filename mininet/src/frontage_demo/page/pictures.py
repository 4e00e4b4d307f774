# SPDX-License-Identifier: Apache-2.0
"""The page: pictures of seeded content and size, in the colours of their real servers, and the HTML around them.

A picture is a PNG. A browser shows it only if each of its chunks has the right CRC-32, so a visible picture arrived
unchanged.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

COUNT = 36
"""Number of pictures on the page."""
SIDES = (40, 440)
"""Minimum and maximum side of a picture in pixels, log-uniform in between: about 4 KB to 500 KB."""
COLOURS = ((5, 80, 174), (188, 76, 0), (26, 127, 55), (130, 80, 223), (10, 125, 132), (160, 50, 122), (140, 107, 0))
"""Red, green and blue for the pictures of each real server in turn."""
GRAIN = 10
"""Maximum random deviation of a pixel, which makes the pictures hard to compress."""
INDEX = "index.html"


@dataclass(frozen=True)
class Object:
    """The page, or one of its pictures."""

    path: str
    """Path below the page's folder; a picture's begins with the name of its real server."""
    body: bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of the body in hexadecimal."""
        return hashlib.sha256(self.body).hexdigest()


def draw(seed: int, servers: Sequence[str], count: int = COUNT) -> list[Object]:
    """Return the pictures of a seed in the page's order: the real servers take turns, and get similar sizes."""
    random = np.random.default_rng(seed)
    low, high = np.log(SIDES)
    rounds = -(-count // len(servers))
    share = random.permutation(rounds)
    pictures = []
    for number in range(count):
        taken, turn = divmod(number, len(servers))
        side = int(np.exp(low + (high - low) * (share[taken] + random.uniform()) / rounds))
        pixels = _paint(random, side, COLOURS[turn % len(COLOURS)])
        pictures.append(Object(f"{servers[turn]}/{number + 1:02}.png", _png(pixels)))
    return pictures


def index(pictures: Sequence[Object]) -> Object:
    """Return the page itself."""
    template = resources.files("frontage_demo").joinpath("data/page.html").read_text()
    shown = "\n".join(f'<img src="{picture.path}" alt="{picture.path}">' for picture in pictures)
    return Object(INDEX, template.replace("{pictures}", shown).encode())


def write(directory: Path, pictures: Sequence[Object]) -> None:
    """Write the page and its pictures into a folder."""
    for item in (index(pictures), *pictures):
        file = directory / item.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(item.body)


def _paint(random: np.random.Generator, side: int, colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Return a picture of interfering waves under noise."""
    y, x = np.mgrid[0:side, 0:side] / side
    waves = np.zeros((side, side))
    for _ in range(3):
        (at_x, at_y), length = random.uniform(-0.2, 1.2, 2), random.uniform(0.08, 0.3)
        waves += np.cos(np.hypot(x - at_x, y - at_y) * 2 * np.pi / length)
    light = (waves / 3 + 1) / 2
    base = np.array(colour)
    pixels = base + (255 - base) * 0.75 * light[..., None]
    pixels = pixels + random.integers(-GRAIN, GRAIN + 1, pixels.shape)
    painted: NDArray[np.uint8] = np.clip(pixels, 0, 255).astype(np.uint8)
    return painted


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode RGB samples (PNG, third edition, section 5)."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # a row begins with its filter type, 0 for none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
