"""An epoch here, in scikit-learn, and by the aggregate: 1,000,000 rows x 28, logistic regression, batch size 1, one
process.

scikit-learn has the same rows in memory as float32 before its clock starts; here they are read from the table. The
peers take turns, so that a change of the machine's speed meets all of them."""

import json
from time import monotonic

from sklearn.linear_model import SGDClassifier

from common import clustered, epoch_seconds, figure, headline, load, median, ms, table
from server import connect

ROUNDS, EPOCHS = 5, 4
RATE = 0.01  # time does not depend on it


def scikit(features, labels):
    """Seconds of an epoch of partial_fit(), which shuffles as SGD should."""
    model = SGDClassifier(
        loss="log_loss", alpha=1e-4, learning_rate="constant", eta0=RATE, shuffle=True, random_state=1
    )
    model.partial_fit(features[:1000], labels[:1000], classes=[-1, 1])
    start = monotonic()
    model.partial_fit(features, labels)
    return [monotonic() - start]


def ours(connection, **options):
    """Seconds of the epochs from the second on."""
    return epoch_seconds(
        connection, "peers", model="logistic", learning_rate=RATE, max_epochs=EPOCHS, options=json.dumps(options)
    )[1:]


def main():
    features, labels = clustered()
    with connect() as connection:
        connection.execute("CREATE EXTENSION corgipile")
        load(connection, "peers", features, labels)
        peers = {
            "corgipile_train": lambda: ours(connection, l2=1e-4),
            "corgipile_train, cache off": lambda: ours(connection, l2=1e-4, cache="off"),
            "corgipile_train_uda": lambda: epoch_seconds(
                connection, "peers", "corgipile_train_uda", model="logistic", learning_rate=RATE, max_epochs=2
            ),
            "scikit-learn partial_fit": lambda: scikit(features, labels),
        }
        seconds = {name: [] for name in peers}
        for round_ in range(-1, ROUNDS):
            for name, run in peers.items():
                measured = run()
                if round_ >= 0:  # the one before warms up
                    seconds[name] += measured
    base = median(seconds["corgipile_train"])
    table(
        "Epoch of logistic regression, 1,000,000 x 28",
        ["peer", "best ms", "median ms", "runs", "median / corgipile_train"],
        [[name, ms(min(s)), ms(median(s)), len(s), f"{median(s) / base:.2f}"] for name, s in seconds.items()],
    )
    scikit_learn, aggregate = median(seconds["scikit-learn partial_fit"]), median(seconds["corgipile_train_uda"])
    for name in ("corgipile_train", "corgipile_train, cache off"):
        of = median(seconds[name])
        cache = ", without the cache" if name.endswith("off") else ""
        what = f"Epoch of logistic regression, 1,000,000 rows x 28{cache}"
        headline(what, f"{ms(of)} ms", f"{ms(scikit_learn)} ms, scikit-learn in memory", scikit_learn / of)
        headline(what, f"{ms(of)} ms", f"{ms(aggregate)} ms, SQL aggregate corgipile_train_uda", aggregate / of)
        figure(f"scikit-learn / {name}", scikit_learn / of, ">= 12")
        figure(f"aggregate / {name}", aggregate / of, ">= 10")


if __name__ == "__main__":
    main()
