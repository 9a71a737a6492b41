"""Which data sets there are, how they lie on disk, and which models they are for."""

from dataclasses import dataclass

BINARY = ("logistic", "svm")
NETWORK = ("mlp",)


@dataclass(frozen=True)
class Set:
    """A data set in one order."""

    name: str
    files: str  # the files are called `files`_train and `files`_test
    models: tuple[str, ...]
    order: str  # "label" (or target), "natural", or "feature": the one that correlates most with the label
    title: str
    dimensions: int | None = None  # of sparse sets
    standardize: bool = False
    batch_sizes: tuple[int, ...] = (1, 128)
    epochs: int = 20
    tables: str | None = None  # the name of another set whose tables serve this one, too

    def table(self, part):
        """The table of part "train" or "test"."""
        return f"{self.tables or self.name}_{part}"

    @property
    def network(self):
        return self.models == NETWORK

    @property
    def drawn_batch_size(self):
        """That of the figures; the tables have all."""
        return min(self.batch_sizes)

    @property
    def sparse(self):
        return self.dimensions is not None

    @property
    def sorted_by_label(self):
        """Also skin, whose file is."""
        return self.order == "label" or self.name == "skin"

    @property
    def columns(self):
        """Whether the features are columns of their own, text among them, and some are NULL."""
        return self.files == "california"

    @property
    def options(self):
        """Those of corgipile_train() that the set needs."""
        options = {"standardize": self.standardize}
        if self.network:
            options |= {"activation": "relu", "optimizer": "sgd", "hidden_layer_sizes": [200, 50]}
        if self.sparse:
            options["dimensions"] = self.dimensions
        if self.columns:
            options["nulls"] = "skip"
        return options


def network(tables, files, title, **rest):
    """A set for networks of the default layers, 200 and 50 units, with the tables of another set."""
    return Set(
        f"{tables}_network", files, NETWORK, "label", f"{title}, network", batch_sizes=(128,), tables=tables, **rest
    )


SETS = (
    Set("higgs", "higgs", BINARY, "label", "higgs", standardize=True),
    Set("higgs_feature", "higgs", BINARY, "feature", "higgs by a feature", standardize=True),
    Set("skin", "skin", BINARY, "natural", "skin (natural order)", standardize=True),
    Set("covtype", "covtype_random", BINARY, "label", "covtype 2 / rest", standardize=True),
    Set("covtype_feature", "covtype_random", BINARY, "feature", "covtype by a feature", standardize=True),
    Set("a9a", "a9a", BINARY, "label", "a9a", dimensions=123),
    # 3% positive, all of them on 33 of 1100 pages: it takes longer until that does not matter
    Set("w8a", "w8a", BINARY, "label", "w8a", dimensions=300, epochs=60),
    Set("kdd99_onehot", "kdd99_onehot", BINARY, "label", "kdd99 one-hot", dimensions=118),
    # more weights than rows: the weights of rare features move only every few thousand steps
    Set("criteo10k_hashed", "criteo10k_hashed", BINARY, "label", "criteo10k hashed", dimensions=1 << 20, epochs=200),
    Set("covtype7", "covtype_random", ("softmax",), "label", "covtype, 7 classes", standardize=True),
    Set("mnist", "mnist", ("softmax",), "label", "mnist"),
    Set("california", "california", ("linear",), "label", "california", standardize=True),
    Set("protein", "protein", ("linear",), "label", "protein", standardize=True),
    Set("blogfeedback", "blogfeedback", ("linear",), "label", "blogfeedback"),
    network("higgs", "higgs", "higgs", standardize=True),
    network("covtype7", "covtype_random", "covtype, 7 classes", standardize=True),
    network("mnist", "mnist", "mnist"),
)
