"""Figure 3 and Example 1 of the papers: 1000 tuples in blocks of 20, a buffer of 10 blocks, the first 500 negative."""

from progress import Progress
from server import STRATEGIES, connect

TUPLES, TUPLES_PER_BLOCK, BUFFER_TUPLES, SEED = 1000, 20, 200, 1


def show_orders(results):
    """Writes orders.csv. (With mrs, an order can be longer than the table, and tuples occur in it more than once.)"""
    progress = Progress("orders", len(STRATEGIES), len(STRATEGIES))
    rows = []
    with connect() as connection:
        for strategy in STRATEGIES:
            order = connection.execute(
                'SELECT "position", tuple FROM corgipile_shuffle_order(%s, %s, %s, %s, %s, 1) ORDER BY "position"',
                [strategy, TUPLES, TUPLES_PER_BLOCK, BUFFER_TUPLES, SEED],
            )
            rows += [{"strategy": strategy, "position": position, "tuple": tuple_} for position, tuple_ in order]
            progress.step(strategy)
    results.write("orders", rows)
