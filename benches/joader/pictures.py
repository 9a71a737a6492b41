"""Pictures to train on: JPEGs of smooth noise in a Parquet file, which take a millisecond and more to decode."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 256  # of a picture in the file
SIZE = 224  # of one that jobs get
LABELS = 10


def jpeg(draw: np.random.Generator) -> bytes:
    from PIL import Image

    colours = draw.integers(0, 256, (16, 16, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(colours).resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    noisy = smooth.astype(np.int16) + draw.integers(-12, 13, smooth.shape, dtype=np.int16)
    to = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(to, "JPEG", quality=90)
    return to.getvalue()


def write(path: Path, count: int) -> float:
    """A file with columns image, label (rows are sorted by it) and id (the row's number). Mean bytes of a picture.

    Of 500 pictures each comes several times: to make one takes longer than to decode it.
    """
    import pyarrow

    draw = np.random.default_rng(1)
    made = [jpeg(draw) for _ in range(min(count, 500))]
    images = [made[i % len(made)] for i in range(count)]
    ids = np.arange(count, dtype=np.int64)
    table = pyarrow.table({"image": images, "label": ids * LABELS // count, "id": ids})
    save(path, table, rows=4)
    return sum(map(len, images)) / count


def write_numbers(path: Path, count: int) -> None:
    """A file of rows of 100 bytes, sorted by label."""
    import pyarrow

    x = np.random.default_rng(1).random(count * 24, dtype=np.float32)
    label = np.arange(count, dtype=np.int32) * LABELS // count
    columns = [pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(x), 24), pyarrow.array(label)]
    save(path, pyarrow.table(columns, names=["x", "label"]), rows=64)


def save(path: Path, table: Any, rows: int) -> None:
    """In pages of this many rows: who reads a few rows does not have to read all of a row group."""
    import pyarrow.parquet

    groups = {"row_group_size": 64 * rows, "write_batch_size": rows, "data_page_size": 1, "write_page_index": True}
    pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False, **groups)
