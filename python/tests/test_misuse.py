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
    with pytest.raises(TypeError, match="a dictionary is needed"):
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
    for dense in (10**12, 2**31, True):
        with pytest.raises(ValueError, match="dense: rows of"):
            corgipile.libsvm(sparse, dense=dense)
