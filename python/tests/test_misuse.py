"""What is asked for wrongly is refused by name, and what goes wrong leaves no half of a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corgipile
from corgipile.index import build_index


def rows(count: int = 100, **options: Any) -> Any:
    return corgipile.CorgiPileDataset(
        corgipile.arrays({"i": np.arange(count)}), batch_size=10, rank=0, world_size=1, **options
    )


def shuffle(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "corgipile", "shuffle", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["batch_size", "lanes", "threads", "memory"])
@pytest.mark.parametrize("number", [-1, 2**63])
def test_a_number_out_of_range_is_refused_by_name(name: str, number: int) -> None:
    source = corgipile.arrays({"i": np.arange(5)})
    options: dict[str, Any] = {name: number}
    with pytest.raises(ValueError, match=f"{name}: {number} is not between"):
        corgipile.CorgiPileDataset(source, rank=0, world_size=1, **options)


def test_states_and_epochs_that_cannot_be_are_refused() -> None:
    data = rows()
    state = data.state_dict()
    for name, value, error in [("batches", -1, ValueError), ("epoch", "3", TypeError), ("batches", 1.5, TypeError)]:
        with pytest.raises(error, match=f"state: {name}"):
            data.load_state_dict({**state, name: value})
    with pytest.raises(TypeError, match="must be a dictionary"):
        data.load_state_dict(None)
    with pytest.raises(ValueError, match="epoch"):
        data.set_epoch(2**63)


def test_a_state_taken_before_the_first_batch_goes_on_with_it() -> None:
    data = rows()
    data.set_epoch(3)
    batches = iter(data)
    state = json.loads(json.dumps(data.state_dict()))
    other = rows()
    other.load_state_dict(state)
    expected, seen = ([batch["i"].tolist() for batch in each] for each in (batches, other))
    assert seen == expected
    assert len(seen) == 10


def test_values_that_would_be_others_are_refused() -> None:
    with pytest.raises(TypeError, match="masked array"):
        corgipile.arrays({"v": np.ma.masked_array([1.0, -999.0], mask=[False, True])})
    pytest.importorskip("torch")
    for values in (np.array([2**63 + 5], "u8"), np.array(["NaT"], "M8[s]")):
        source = corgipile.arrays({"v": values})
        with pytest.raises(ValueError, match="tensor"):
            list(corgipile.CorgiPileDataset(source, rank=0, world_size=1, tensors="torch"))


def test_a_file_that_is_shuffled_onto_itself_keeps_its_rows_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    lines = [f"{i:05},{i}.50,{'' if i % 7 else 'x'}" for i in range(500)]
    file.write_text("id,x,note\n" + "".join(line + "\n" for line in lines))
    done = shuffle(file, "-o", file, "--seed", 1)
    assert done.returncode == 0, done.stderr
    head, *shuffled = file.read_text().splitlines()
    assert head == "id,x,note"
    assert sorted(shuffled) == lines != shuffled
    assert list(tmp_path.iterdir()) == [file] or all(not name.name.endswith(".tmp") for name in tmp_path.iterdir())


def test_a_command_that_fails_leaves_the_output_alone(tmp_path: Path) -> None:
    kept = tmp_path / "keep.csv"
    kept.write_text("precious\n")
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 and nothing else")
    assert shuffle(damaged, "-o", kept).returncode != 0
    assert kept.read_text() == "precious\n"


def test_outputs_that_are_no_files_are_written_to_and_stay(tmp_path: Path) -> None:
    file, real, link = tmp_path / "rows.csv", tmp_path / "real.csv", tmp_path / "link.csv"
    file.write_text("id\n1\n2\n3\n")
    real.write_text("old\n")
    real.chmod(0o640)
    link.symlink_to(real)
    assert shuffle(file, "-o", link).returncode == 0
    assert link.is_symlink() and sorted(real.read_text().split()) == ["1", "2", "3", "id"]
    assert real.stat().st_mode & 0o777 == 0o640
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        assert shuffle(file, "-o", pipe).returncode == 0
        assert sorted(reader.communicate()[0].split()) == ["1", "2", "3", "id"]
    assert pipe.is_fifo()


def test_lengths_that_cannot_be_end_no_process(tmp_path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    pyarrow = pytest.importorskip("pyarrow")
    file = tmp_path / "rows.arrow"
    feather.write_feather(pyarrow.table({"i": range(60)}), file, compression="lz4")
    assert len(list(corgipile.CorgiPileDataset(corgipile.arrow(file), rank=0, world_size=1))) == 1
    stored = bytearray(file.read_bytes())
    # what the part says that it is long, before LZ4's magic number
    stored[stored.index((480).to_bytes(8, "little") + b"\x04\x22\x4d\x18") + 7] = 4
    file.write_bytes(stored)
    with pytest.raises(corgipile.SourceError, match="longer than it can be"):
        list(corgipile.CorgiPileDataset(corgipile.arrow(file), rank=0, world_size=1))
    sparse = tmp_path / "rows.libsvm"
    sparse.write_text("1 1:5 2147483647:6\n")
    with pytest.raises(ValueError, match="dense: rows of 2147483647 numbers are longer than 16777216: leave dense out"):
        corgipile.libsvm(sparse, dense=True)
    for dense in (2**24 + 1, 2**31, 10**12, 2**64, 0, -1):
        with pytest.raises(ValueError, match=f"dense: {dense} is not between 1 and 16777216: True takes"):
            corgipile.libsvm(sparse, dense=dense)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 2**64, 10**30])
def test_a_seed_out_of_range_is_refused_by_name_with_its_bounds(seed: int, tmp_path: Path) -> None:
    source = corgipile.arrays({"i": np.arange(5)})
    told = f"seed: {seed} is not between {-(2**63)} and {2**63 - 1}"
    for take in (
        lambda: rows(seed=seed),
        lambda: rows(seed=seed, shuffle="shuffle_once", cache_dir=tmp_path),
        lambda: corgipile.shuffle_once(source, tmp_path, seed=seed),
        lambda: corgipile.corgi2(source, tmp_path, seed=seed),
    ):
        with pytest.raises(ValueError, match=told):
            take()
    file = tmp_path / "rows.csv"
    file.write_text("id\n1\n2\n")
    done = shuffle(file, "--seed", seed)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"corgipile: {told}\n")


def test_the_outermost_seeds_are_seeds(tmp_path: Path) -> None:
    for seed in (2**63 - 1, -(2**63)):
        assert len(list(rows(seed=seed))) == 10
        source = corgipile.arrays({"i": np.arange(5)})
        assert len(corgipile.shuffle_once(source, tmp_path, seed=seed)) == 5


OPENERS = [
    corgipile.parquet,
    corgipile.arrow,
    corgipile.tfrecord,
    corgipile.webdataset,
    corgipile.csv,
    corgipile.libsvm,
]


@pytest.mark.parametrize("opener", OPENERS)
def test_paths_that_are_none_are_refused_by_name(opener: Any) -> None:
    for paths in (None, 3, b"rows.csv", {"a": 1}, [None], ["a.csv", 3], [b"a"]):
        with pytest.raises(TypeError, match=r"paths: must be a path"):
            opener(paths)
    for paths, told in [
        ("", "the path is empty"),
        ("a\0b", ".* a character"),
        ("a\udcff", ".* a character"),
        ([], "no path"),
    ]:
        with pytest.raises(ValueError, match=f"paths: {told}"):
            opener(paths)
    with pytest.raises(TypeError, match="on_error: must be a string"):
        opener("rows", on_error=None)


def test_arguments_of_sources_of_the_wrong_type_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n1,2\n")
    calls: list[tuple[str, Any]] = [
        ("columns: must be a list of names, not 5", lambda: corgipile.csv(file, 5)),  # type: ignore[arg-type]
        ("columns: must be a list of names, but None", lambda: corgipile.csv(file, [None])),  # type: ignore[list-item]
        ("columns: must be a list of names, such as", lambda: corgipile.parquet(file, "a")),
        ("header: must be True or False", lambda: corgipile.csv(file, header=None)),  # type: ignore[arg-type]
        ("delimiter: must be a character", lambda: corgipile.csv(file, delimiter=None)),  # type: ignore[arg-type]
        ("quote: must be a character", lambda: corgipile.csv(file, quote=34)),  # type: ignore[arg-type]
        ("types: must be a dictionary", lambda: corgipile.csv(file, types=["a"])),  # type: ignore[arg-type]
        ("types: names and types are texts", lambda: corgipile.csv(file, types={"a": int})),  # type: ignore[dict-item]
        ("null_values: must be a list of words", lambda: corgipile.csv(file, null_values=None)),  # type: ignore[arg-type]
        ("null_values: must be a list of words", lambda: corgipile.csv(file, null_values=[0])),  # type: ignore[list-item]
        ("index: must be a path", lambda: corgipile.csv(file, index=None)),  # type: ignore[arg-type]
        ("features: must be a dictionary", lambda: corgipile.tfrecord(file, features=["a"])),  # type: ignore[arg-type]
        ("lists: must be a string", lambda: corgipile.parquet(file, lists=None)),  # type: ignore[arg-type]
        ("memory_map: must be True or False", lambda: corgipile.arrow(file, memory_map="no")),  # type: ignore[arg-type]
        ("dense: 2.5 is not an integer", lambda: corgipile.libsvm(file, dense=2.5)),  # type: ignore[arg-type]
        ("dense: nan is not an integer", lambda: corgipile.libsvm(file, dense=float("nan"))),  # type: ignore[arg-type]
        ("dense: None is not an integer", lambda: corgipile.libsvm(file, dense=None)),  # type: ignore[arg-type]
        ("zero_based: must be True, False", lambda: corgipile.libsvm(file, zero_based=1)),  # type: ignore[arg-type]
        ("table: must be a string", lambda: corgipile.postgres(None)),  # type: ignore[call-overload]
        ("connection: must be a string", lambda: corgipile.postgres("t", connection=None)),  # type: ignore[call-overload]
        ("where: must be a string", lambda: corgipile.postgres("t", where=1)),  # type: ignore[call-overload]
        ("snapshot: must be a string", lambda: corgipile.postgres("t", snapshot=1)),  # type: ignore[call-overload]
        ("columns: must be a dictionary of arrays", lambda: corgipile.arrays(None)),  # type: ignore[arg-type]
        ("columns: must be a dictionary of arrays", lambda: corgipile.arrays([np.arange(3)])),  # type: ignore[arg-type]
        ("fingerprint: 'a' is not an integer", lambda: corgipile.arrays({"i": [1]}, fingerprint="a")),  # type: ignore[arg-type]
        ("path: must be a path", lambda: build_index(None)),  # type: ignore[arg-type]
        ("delimiter: must be a character", lambda: build_index(file, delimiter=9)),  # type: ignore[arg-type]
        ("directory: must be a path", lambda: build_index(file, directory=9)),  # type: ignore[arg-type]
        ("header: must be True or False", lambda: build_index(file, header=None)),  # type: ignore[arg-type]
        ("progress: must be a function", lambda: build_index(file, progress=9)),  # type: ignore[arg-type]
    ]
    for told, call in calls:
        with pytest.raises(TypeError, match=told):
            call()
    for number in (-1, 2**64):
        with pytest.raises(ValueError, match=f"fingerprint: {number} is not between"):
            corgipile.arrays({"i": [1]}, fingerprint=number)
        with pytest.raises(ValueError, match=f"fingerprint: {number} is not between"):
            corgipile.map_style([1], fingerprint=number)


def test_arguments_of_data_sets_loaders_and_copies_of_the_wrong_type_are_refused_by_name(tmp_path: Path) -> None:
    source, data = corgipile.arrays({"i": np.arange(5)}), rows()
    given: Any
    for given in ({"seed": None}, {"seed": "1"}, {"seed": 1.0}, {"seed": float("nan")}, {"threads": 2.0}):
        with pytest.raises(TypeError, match=f"{next(iter(given))}: .* is not an integer"):
            rows(**given)
    with pytest.raises(TypeError, match="shuffle: must be a string"):
        rows(shuffle=None)
    with pytest.raises(TypeError, match="cache_dir: must be a path"):
        rows(shuffle="corgi2", cache_dir=3)
    for name in ("rank", "world_size"):
        with pytest.raises(TypeError, match=f"{name}: '1' is not an integer"):
            corgipile.CorgiPileDataset(source, **{"rank": 0, "world_size": 2, name: "1"})
    for workers, error in [("2", TypeError), (None, TypeError), (1.5, TypeError), (-1, ValueError), (1025, ValueError)]:
        with pytest.raises(error, match="num_workers: "):
            corgipile.Loader(data, num_workers=workers)  # type: ignore[arg-type]
    for name in ("transform", "sample_transform"):
        with pytest.raises(TypeError, match=f"^{name}: must be a function, not 3"):
            corgipile.Loader(data, **{name: 3})  # type: ignore[arg-type]
    for copy in (corgipile.shuffle_once, corgipile.corgi2):
        with pytest.raises(TypeError, match="source: NoneType is not made by"):
            copy(None, tmp_path)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="directory: must be a path, not None"):
            copy(source, None)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="progress: must be a function"):
            copy(source, tmp_path, progress="yes")  # type: ignore[arg-type]
    for memory in (0, -1, 2**64):
        with pytest.raises(ValueError, match=f"memory: {memory} is not between"):
            corgipile.shuffle_once(source, tmp_path, memory=memory)
    assert list(tmp_path.iterdir()) == []


def test_errors_of_index_begin_as_those_of_other_commands(tmp_path: Path) -> None:
    for name in ("nowhere.csv", "rows.xyz"):
        command = [sys.executable, "-m", "corgipile", "index", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith("corgipile: ") and name in done.stderr, done.stderr
