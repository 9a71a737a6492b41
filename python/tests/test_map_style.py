"""Map-style data sets, read in ranges."""

from __future__ import annotations

import numpy as np
import pytest

from corgipile import CorgiPileDataset, Loader, map_style


class Squares:
    """Numbers and their squares; remembers what it was asked for."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        self.asked.append(i)
        return np.full(3, i), i * i


class InBulk(Squares):
    def __getitems__(self, items: list[int]) -> list[tuple[np.ndarray, int]]:
        return [self[i] for i in items]


class Breaks(Squares):
    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        if i == 123:
            raise ZeroDivisionError("item 123")
        return super().__getitem__(i)


@pytest.mark.parametrize("of", [Squares, InBulk])
@pytest.mark.parametrize("ranks", [1, 3])
def test_each_item_is_read_once_in_runs_of_neighbours(of: type[Squares], ranks: int) -> None:
    dataset = of(1000)
    seen: list[int] = []
    for rank in range(ranks):
        for items, squares in CorgiPileDataset(
            map_style(dataset), block_size=20, rank=rank, world_size=ranks, batch_size=32
        ):
            assert items.shape == (len(squares), 3)
            assert (items[:, 0] ** 2 == squares).all()
            seen += items[:, 0].tolist()
    assert set(seen) == set(range(1000))
    assert len(seen) - 1000 < ranks
    neighbours = np.diff(dataset.asked) == 1
    assert neighbours.mean() > 0.9
    assert not (np.diff(seen) == 1).mean() > 0.2


def test_what_an_item_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError, match="item 123"):
        list(CorgiPileDataset(map_style(Breaks(1000))))


def test_items_are_put_together_as_asked() -> None:
    batch = next(iter(CorgiPileDataset(map_style(Squares(100), collate=list), batch_size=10)))
    assert isinstance(batch, list)
    assert len(batch) == 10


def test_items_go_on_from_any_batch_also_with_workers() -> None:
    pytest.importorskip("torch")
    of = lambda: CorgiPileDataset(map_style(Squares(500)), batch_size=16, lanes=2)  # noqa: E731
    expected = [squares.tolist() for _, squares in of()]
    for workers in (0, 2):
        loader = Loader(of(), num_workers=workers)
        iterator = iter(loader)
        first = [next(iterator)[1].tolist() for _ in range(9)]
        resumed = Loader(of(), num_workers=workers)
        resumed.load_state_dict(loader.state_dict())
        assert first + [squares.tolist() for _, squares in resumed] == expected


def test_what_is_no_map_style_data_set_is_refused() -> None:
    with pytest.raises(TypeError, match="dataset: generator has no __len__"):
        map_style(i for i in range(3))
