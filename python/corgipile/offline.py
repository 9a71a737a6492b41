"""Copies of a data set in another order, to compare with, or to read again and again.

They are Arrow files in a directory, named by what they were made of: a copy that is there is not made again, and one of
another source or seed is never taken for it. Of several processes that want the same copy, one makes it while the
others wait: a copy that another one replaced would be a file that changes while it is read.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from corgipile import _native
from corgipile._checks import check_function, check_number, check_path, check_seed
from corgipile.sources import Source, arrow

Progress = bool | Callable[[int, int], Any]


def shuffle_once(
    source: Source,
    directory: str | os.PathLike[str],
    *,
    seed: int = 0,
    memory: int = 1 << 30,
    progress: Progress = False,
) -> Source:
    """All rows in one random order, copied to disk: to be read with `shuffle="no_shuffle"`.

    As much disk as the rows take in memory is needed, twice while it works. A copy that is there is not made again.

    Args:
        source: made by `corgipile.parquet` and the like.
        directory: where the copy is.
        seed: names the order.
        memory: about how many bytes to take.
        progress: whether to show a bar (needs tqdm), or a function that is told how many rows are done, of how many.
    """

    check_number("memory", memory, 1, 2**62)

    def make(path: str, tell: Any) -> None:
        _native.shuffle_once(source.native, path, seed, memory, tell)

    return _copy("shuffle_once", source, directory, (seed,), make, progress)


def corgi2(
    source: Source,
    directory: str | os.PathLike[str],
    *,
    block_size: int | str = "auto",
    buffer_size: int | str = "10%",
    seed: int = 0,
    progress: Progress = False,
) -> Source:
    """The rows as CorgiPile reads them, copied to disk, to be read with CorgiPile again: Corgi2's offline pass.

    Arguments are those of `shuffle_once`, and the sizes of `CorgiPileDataset`.
    """
    sizes = (str(block_size), str(buffer_size))

    def make(path: str, tell: Any) -> None:
        _native.corgi2(source.native, path, seed, *sizes, tell)

    return _copy("corgi2", source, directory, (seed, *sizes), make, progress)


def _copy(
    name: str,
    source: Source,
    directory: str | os.PathLike[str],
    choices: tuple[Any, ...],
    make: Callable[[str, Any], None],
    progress: Progress,
) -> Source:
    if not isinstance(source, Source):
        raise TypeError(f"source: {type(source).__name__} is not made by corgipile.parquet and the like")
    check_path("directory", directory)
    check_seed(choices[0])
    if not isinstance(progress, bool):
        check_function("progress", progress)
    of = hashlib.blake2b(repr((name, source.fingerprint, *choices)).encode(), digest_size=8).hexdigest()
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(os.fspath(directory), f"{name}-{of}.arrow")
    if not os.path.exists(path):
        with _alone(f"{path}.lock"):
            if os.path.exists(path):
                pass  # another process made it meanwhile
            elif progress is True:
                with _Bar(name) as bar:
                    make(path, bar)
            else:
                make(path, progress or None)
    return arrow(path)


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Waits until nobody else has the lock, which ends with its process at the latest."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # whoever waits for it finds the copy there, or makes it
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


class _Bar:
    """tqdm's bar."""

    def __init__(self, name: str) -> None:
        try:
            import tqdm
        except ImportError as error:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from error
        self._bar = tqdm.tqdm(desc=name, unit=" rows", unit_scale=True)

    def __call__(self, done: int, of: int) -> None:
        self._bar.total = of
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_error: object) -> None:
        self._bar.close()
