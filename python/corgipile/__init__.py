"""Data sets in CorgiPile's order, for PyTorch and for numpy alone.

    import corgipile

    ds = corgipile.CorgiPileDataset(corgipile.parquet("train/*.parquet"), batch_size=64)
    for epoch in range(3):
        ds.set_epoch(epoch)
        for batch in ds:  # a dictionary of column name to array
            ...
"""

from corgipile._native import SourceError
from corgipile.dataset import CorgiPileDataset
from corgipile.loader import Loader
from corgipile.map_style import map_style
from corgipile.sources import Source, arrays, parquet

__all__ = [
    "CorgiPileDataset",
    "Loader",
    "Source",
    "SourceError",
    "arrays",
    "map_style",
    "parquet",
]
