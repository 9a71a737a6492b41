"""protocol.md: how the strategies and models are measured."""

from markdown import table
from server import L2

INTRODUCTION = """How trainings are set up, on which data, and what is measured. This holds for all pages but speed,
compression and faults."""

TRAININGS = f"""- From zero weights (networks: from random ones, by the seed), l2 {L2:g}, plain SGD, 20 epochs (w8a 60,
criteo10k_hashed 200).
- The learning rate falls exponentially to a thousandth in the last epoch.
- The buffer is a tenth of the table, as in the papers. (By default the smallest sets would be single buffers.)
- Networks have hidden layers of 200 and 50 rectified linear units.
- Everything else is the default, in particular `block_size` (`auto`). [Decay and block
  size](strategies.md#decay-and-block-size) shows what these two do.
"""

DATA = """- Dense sets are standardized, except mnist (pixels / 255) and blogfeedback (`sign(x) log1p(|x|)` over the
  training part's maximum, target `log1p`). Sparse sets are not.
- Of california, rows with a NULL are skipped; its target is in units of 100,000 dollars.
- Order: ascending by label (or target). skin is as its file is, which is sorted, too. "By a feature": ascending by the
  feature that correlates most with the label.

"""

RATE = """The learning rate is found for each set, model and batch size with `shuffle_once` alone and seed 100. From a
first guess the search goes to the neighbouring rate (1, 0.3, 0.1, ...) as long as the training objective (loss and
penalty) of the final model falls. Then it takes the smallest rate that comes within 0.2% of the lowest objective. All
strategies use that rate. `target/results/rates.csv` has all rates that were tried."""

MEASURES = """- Seeds 1 to 5, means over them. `no_shuffle` has one order and runs once (of networks, with all seeds).
- Loss and score (accuracy, of linear models R2) are those of the stored model, by `corgipile_evaluate` on the whole
  training and test part. The loss is without the penalty.
- "After this many epochs" is the model of a training of that many epochs. With the same seed its epochs are the same as
  in the whole training, which is checked.
- Seconds are those of one run (seed 1), alone on the machine if the [load](README.md#machines-and-versions) before that
  part was low, tables in shared buffers. They include the pass that standardizes and the full shuffles of
  `shuffle_once` and `epoch_shuffle`.
"""


def pages(page):
    rows = page.results.read("sets")
    columns = {
        "set": "set",
        "title in the figures": "title",
        "order": "order",
        "training rows": "train_rows",
        "test rows": "test_rows",
    }
    sections = [
        ("Trainings", TRAININGS),
        ("Data sets", DATA + table(columns, rows)),
        ("Learning rate", RATE),
        ("Measures", MEASURES),
    ]
    return [("protocol.md", "Protocol", INTRODUCTION, sections)]
