"""convergence.md: the figures by model."""

from markdown import figure

INTRODUCTION = """How models get better epoch by epoch and second by second, with each strategy. CorgiPile is the broad
blue line, the full shuffles are the dark dashed and dotted lines drawn over it. Where they run inside the blue line,
CorgiPile is as good as they are.

A panel is a data set, sorted by label (or target) unless its title says otherwise. Lines are means over five seeds;
the tinted bands are one standard deviation.{single} Logistic, svm, softmax and linear models learn from one tuple a
step, networks from mini-batches of 128. Seconds are those of one run, alone on the machine, tables in shared buffers;
they include the full shuffles of `shuffle_once` and `epoch_shuffle`.{disturbed} [Protocol](protocol.md) has the rest,
[strategies](strategies.md) the numbers, also of mini-batches.
"""

MODELS = {
    "logistic": "Logistic regression",
    "svm": "Support vector machine",
    "softmax": "Softmax regression",
    "linear": "Linear regression",
    "mlp": "Networks",
}
REMARKS = {
    "linear": "The axis begins at 0, which is as good as guessing the mean. Lines from below were worse than that.\n\n",
    "mlp": "Two hidden layers of 200 and 50 rectified linear units.\n\n",
}
MEASURES = {
    "test_by_epoch": "Test score after this many epochs",
    "test_by_seconds": "Test score by seconds",
    "loss_by_epoch": "Training loss after this many epochs",
}


def pages(page):
    sections = []
    for model, title in MODELS.items():
        text = "".join(
            f"{caption}:\n\n" + figure(f"{measure}_{model}.svg", f"{title}: {caption.lower()}, for each strategy")
            for measure, caption in MEASURES.items()
            if f"{measure}_{model}.svg" in page.plots
        )
        if text:
            sections.append((title, REMARKS.get(model, "") + text))
    return [
        ("convergence.md", "Convergence", INTRODUCTION.format(single=single(page), disturbed=disturbed(page)), sections)
    ]


def single(page):
    """Which sets were measured with one seed on the way."""
    seeds = {}
    for row in page.results.read("checkpoints"):
        if row["strategy"] == "corgipile":
            seeds.setdefault(row["set"], {}).setdefault(row["epochs"], set()).add(row["seed"])
    names = [name for name, epochs in seeds.items() if min(map(len, epochs.values())) == 1]
    return f" (On the way, before the last epoch, {', '.join(names)} were measured with one seed.)" if names else ""


def disturbed(page):
    """Which parts were timed while others used the machine."""
    loads = [
        f"{row['part']}, load {row['load']}"
        for row in page.results.read("parts")
        if row["part"].startswith("convergence") and float(row["load"] or 0) > 1
    ]
    return f" Others used the machine, and the seconds are too long, in: {'; '.join(loads)}." if loads else ""
