"""Indexes: built by a command, used when a file is opened, refused when they are of another file."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_sources import ROWS, example, read, record, write

import corgipile
from corgipile import cli
from corgipile.index import Bar, build_index, main


@pytest.mark.parametrize("kind", ["tfrecord", "tar", "csv", "libsvm"])
def test_the_command_builds_an_index_that_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    before = write(tmp_path, kind)
    path = tmp_path / f"rows.{kind}"
    assert main([str(path)]) == 0
    told = capsys.readouterr().out
    assert f"{path}: {ROWS} rows in " in told and "taken up" not in told
    assert (tmp_path / f"rows.{kind}.cpindex").exists()
    assert not (tmp_path / f"rows.{kind}.cpindex.part").exists()
    assert write_again(path).fingerprint == before.fingerprint
    assert main([str(path)]) == 0
    assert "has an index already" in capsys.readouterr().out
    assert main(["--quiet", "--force", str(path)]) == 0
    assert capsys.readouterr().out == ""


def write_again(path: Path) -> corgipile.Source:
    opener = {".tfrecord": corgipile.tfrecord, ".tar": corgipile.webdataset, ".csv": corgipile.csv}
    return opener[path.suffix](path) if path.suffix in opener else corgipile.libsvm(path, dense=True)


def test_an_index_of_the_file_as_it_was_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "tfrecord")
    path = tmp_path / "rows.tfrecord"
    assert build_index(path)["rows"] == ROWS
    path.write_bytes(path.read_bytes() + record(example(ROWS)))
    with pytest.raises(ValueError, match=r"is not of .*rows\.tfrecord as it is now.*python -m corgipile index --force"):
        corgipile.tfrecord(path)
    assert main([str(path)]) == 1
    assert "--force" in capsys.readouterr().err
    assert len(corgipile.tfrecord(path, index="build")) == ROWS + 1
    assert len(corgipile.tfrecord(path)) == ROWS + 1


def test_an_index_may_be_in_a_directory_or_of_another_program(tmp_path: Path) -> None:
    write(tmp_path, "tfrecord")
    path, directory = tmp_path / "rows.tfrecord", tmp_path / "indexes"
    directory.mkdir()
    assert build_index(path, directory=directory)["path"] == str(directory / "rows.tfrecord.cpindex")
    assert len(corgipile.tfrecord(path, index=directory)) == ROWS
    lengths = [len(record(example(number))) for number in range(ROWS)]
    lines = [f"{sum(lengths[:number])} {length}\n" for number, length in enumerate(lengths)]
    foreign = tmp_path / "blocks.txt"
    foreign.write_text("".join(lines))
    assert len(corgipile.tfrecord(path, index=foreign)) == ROWS
    # as in the paper
    assert len(list(corgipile.CorgiPileDataset(path, foreign, batch_size=100))) == 3
    (tmp_path / "rows.tfindex").write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match=r"rows\.tfindex, line 299: ends before the file"):
        corgipile.tfrecord(path)
    with pytest.raises(FileNotFoundError, match="index"):
        corgipile.tfrecord(path, index=tmp_path / "nowhere")


def test_damage_stops_the_command_or_the_rest_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.tfrecord"
    path.write_bytes(b"".join(record(example(number)) for number in range(5)) + b"not a record")
    assert main([str(path)]) == 1
    told = capsys.readouterr().err
    assert "rows.tfrecord, byte " in told
    assert told.count("\n") == 1
    assert main(["--skip-damaged", str(path)]) == 0
    assert "5 rows" in (told := capsys.readouterr().out)
    assert "the rest left out, from byte " in told
    with pytest.raises(corgipile.SourceError, match="there is no record"):
        corgipile.tfrecord(path)
    source = corgipile.tfrecord(path, on_error="skip")
    assert read(source)["id"].tolist() == [0, 1, 2, 3, 4]
    assert "the rest left out" in source.messages[0]


def test_what_needs_no_index_or_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.parquet").touch()
    assert main([str(tmp_path / "rows.parquet"), str(tmp_path / "rows.csv"), str(tmp_path / "rows.xyz")]) == 1
    told = capsys.readouterr().err.splitlines()
    assert "needs no index" in told[0]
    assert "No such file" in told[1]
    assert "say its format" in told[2]


class Interrupting(Bar):
    """Presses Ctrl-C somewhere in the middle."""

    number: int = signal.SIGINT

    def __call__(self, done: int, total: int) -> None:
        if 0 < done < total:
            signal.raise_signal(self.number)


def test_an_interrupted_command_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv"
    line = b"1," + b"2" * 253 + b"\n"
    path.write_bytes(b"a,b\n" + line * (1 << 17))
    monkeypatch.setattr("corgipile.index.Bar", Interrupting)
    assert main([str(path)]) == 130
    assert "interrupted; the same command goes on where it was" in capsys.readouterr().err
    assert not (tmp_path / "rows.csv.cpindex").exists()
    seen: list[tuple[int, int]] = []
    built = build_index(path, progress=lambda done, total: seen.append((done, total)))
    assert built["resumed_at"] > 1 << 20
    assert built["rows"] == 1 << 17
    assert all(done <= total for done, total in seen)
    assert len(corgipile.csv(path)) == 1 << 17


@pytest.fixture
def not_ignored(number: int) -> Iterator[None]:
    """Anyone who runs the tests below nohup ignores SIGHUP, and so would the command."""
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
    yield
    signal.signal(number, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_what_interrupts_the_command_is_its_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    not_ignored: None,
    number: int,
    code: int,
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n" + (b"1," + b"2" * 253 + b"\n") * (1 << 17))
    monkeypatch.setattr("corgipile.index.Bar", type("Ending", (Interrupting,), {"number": number}))
    assert cli.main(["index", str(path)]) == code
    assert capsys.readouterr().err == f"corgipile: {path}: interrupted; the same command goes on where it was\n"


def test_the_bar_fits_its_line_and_says_how_long_it_takes() -> None:
    bar = Bar("rows.csv")
    bar._begun -= 10
    bar(250_000_000, 1_000_000_000)
    bar._first = 0
    line = bar.line(79)
    assert len(line) == 79
    assert " 25% of 1.00 GB, 30 s left" in line
    assert 6 <= line.count("#") <= 12
    assert len(bar.line(10)) == 10
