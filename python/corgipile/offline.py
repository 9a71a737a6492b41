"""Copies of a data set in another order, for comparison, or to be read repeatedly.

Copies are Arrow files in a directory, named by what they were made of: an existing copy is not made again, and a copy
of another source or seed is never used. If several processes want the same copy, one makes it while the others wait: a
copy that is replaced would be a file that changes while it is read.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Generator
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
    """Copies all rows to disk in one random order, to be read with `shuffle="no_shuffle"`.

    It needs as much disk space as the rows take in memory, and twice that while it works. An existing copy is used
    again.

    Args:
        source: a source such as `corgipile.parquet(...)`.
        directory: where the copy is stored.
        seed: determines the order.
        memory: approximate number of bytes to use.
        progress: True shows a bar (needs tqdm); a function is called with the number of rows done and the total.
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
    """Copies the rows to disk in CorgiPile's order, to be read with CorgiPile again: the offline pass of Corgi2.

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
def _alone(path: str) -> Generator[None, None, None]:
    """Waits until no one else has the lock, which ends with its process at the latest."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # anyone who waits for it finds the copy there, or makes it
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
