"""XXH3 with 64 bits, by the package xxhash, which assigns values of hashed columns to the buckets of the database."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest as xxh3_64

__all__ = ["bucket", "xxh3_64"]


def bucket(column: str, value: str | None, buckets: int) -> int:
    """The bucket, from 0, of a column's value, or of a missing one."""
    seed = xxh3_64(column.encode())
    return (seed if value is None else xxh3_64(value.encode(), seed)) % buckets
