"""Functions that prepare rows in processes of their own, as a server calls them."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from corgipile import _native
from corgipile.joader._preparer import packed

# Only the tests of this process have something sleep for so long.
SECONDS = str(1_000_000 + os.getpid())

FUNCTIONS = """
    import os, signal, subprocess, sys, time
    import numpy as np

    calls = 0

    def same(columns):
        return columns

    def types(columns):
        return {name: np.array([f"{values.dtype.str} {values.shape[1:]}"] * len(values))
                for name, values in columns.items()}

    def twice(columns):
        columns["x"] *= 2
        return columns

    def process(columns):
        return {"x": np.full(len(columns["x"]), os.getpid())}

    def counted(columns):
        global calls
        calls += 1
        return {"x": np.full(len(columns["x"]), calls)}

    def prints(columns):
        print("this is no answer")
        sys.stdout.flush()
        assert sys.stdin.read() == ""
        return columns

    def raises(columns):
        raise ValueError("no such colour: ä")

    def leaves(columns):
        sys.exit("not today")

    def exits(columns):
        print("going down", file=sys.stderr)
        os._exit(3)

    def killed(columns):
        os.kill(os.getpid(), signal.SIGKILL)

    def crashes(columns):
        import ctypes
        ctypes.string_at(0)

    def hangs(columns):
        subprocess.Popen(["sleep", "SECONDS"])
        time.sleep(1000)

    def called():
        open(__file__ + ".called", "w").close()

    def waits(columns):
        called()
        time.sleep(float(columns["x"][0]))
        return columns

    def keeps_the_interpreter(columns):
        import ctypes
        called()
        ctypes.PyDLL(None).sleep(1000)

    def no_dict(columns):
        return [1, 2]

    def no_columns(columns):
        return {}

    def fewer(columns):
        return {"x": columns["x"][:-1]}

    def one_value(columns):
        return {"x": 5}

    def complex_numbers(columns):
        return {"x": columns["x"] * 1j}

    def objects(columns):
        return {"x": np.array([object()] * len(columns["x"]))}

    def mixed(columns):
        return {"x": np.array(["a", b"b", None][: len(columns["x"])], dtype=object)}

    def as_list(columns):
        return {"x": columns["x"].tolist(), "names": [f"row {i}" for i in columns["x"]]}

    no_function = 5
"""


@pytest.fixture
def preparers(tmp_path, monkeypatch):
    """Makes pools of processes that find the functions above as the module `functions`."""
    (tmp_path / "functions.py").write_text(textwrap.dedent(FUNCTIONS).replace("SECONDS", SECONDS))
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    (tmp_path / "wrong.py").write_text("def f(:\n")
    package = Path(_native.__file__).parent.parent

    def make(number=1, **options):
        path = f"{tmp_path}:{package}"
        return _native.Preparers(sys.executable, number, variables=[("PYTHONPATH", path)], **options)

    return make


def called(preparers, function, columns):
    return preparers.call(f"functions:{function}", [packed(name, values) for name, values in columns.items()])


def failed(preparers, function, columns=None):
    with pytest.raises(RuntimeError) as raised:
        called(preparers, function, columns or {"x": np.arange(3)})
    text = str(raised.value)
    assert text.startswith(f"functions:{function}: ")
    return text


def ragged(*rows):
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", "M8[D]", "M8[us]", "M8[ns]", "m8[ms]"]


def test_numbers_of_every_type_and_shape_come_back(preparers):
    columns = {}
    for code in NUMBERS:
        for shape in [(), (4,), (2, 3), (2, 3, 5)]:
            values = np.arange(6 * int(np.prod(shape))).reshape(6, *shape) % 2
            columns[f"{code} {shape}"] = values.astype(code)
    back = called(preparers(), "same", columns)
    assert list(back) == list(columns)
    for name, values in columns.items():
        assert back[name].dtype == values.dtype, name
        np.testing.assert_array_equal(back[name], values, err_msg=name)
    # and the function has seen them so
    seen = called(preparers(), "types", columns)
    for name, values in columns.items():
        assert seen[name][0] == f"{values.dtype.str} {values.shape[1:]}", name


def test_what_is_missing_comes_back(preparers):
    columns = {
        "f": np.array([1.5, np.nan, -np.inf]),
        "day": np.array(["2024-02-29", "NaT", "1969-12-31"], dtype="M8[D]"),
        "text": np.array(["ä", None, ""], dtype=object),
        "bytes": np.array([b"\x00\xff", None, b""], dtype=object),
    }
    back = called(preparers(), "same", columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(back[name], values, err_msg=name)


def test_text_and_bytes_of_numpy_come_back_as_objects(preparers):
    back = called(preparers(), "same", {"text": np.array(["a", "bcd"]), "bytes": np.array([b"a", b"bcd"])})
    assert back["text"].tolist() == ["a", "bcd"]
    assert back["bytes"].tolist() == [b"a", b"bcd"]


def test_lists_of_any_length_come_back(preparers):
    columns = {
        "numbers": ragged(np.array([1, 2], np.int32), None, np.array([], np.int32), np.array([3], np.int32)),
        "texts": ragged(np.array(["a", None], object), np.array(["b"], object), None, np.array([], object)),
        "plain": ragged([1.5], [], [2.5, 3.5], None),
    }
    back = called(preparers(), "same", columns)
    for name, values in columns.items():
        for row, (one, other) in enumerate(zip(back[name], values)):
            if other is None:
                assert one is None, (name, row)
            else:
                assert one.tolist() == list(other), (name, row)
    assert back["numbers"][0].dtype == np.int32


def test_a_function_may_write_into_what_it_gets_and_give_lists(preparers):
    pool = preparers()
    given = np.arange(5)
    assert called(pool, "twice", {"x": given})["x"].tolist() == [0, 2, 4, 6, 8]
    assert given.tolist() == [0, 1, 2, 3, 4]
    back = called(pool, "as_list", {"x": given})
    assert back["x"].tolist() == [0, 1, 2, 3, 4]
    assert back["names"][4] == "row 4"


def test_rows_of_any_number_and_size_go_through_one_process(preparers):
    pool = preparers()
    for rows in [3, 0, 1, 2000, 1, 7]:
        images = np.random.default_rng(rows).integers(0, 256, (rows, 16, 16, 3), np.uint8)
        back = called(pool, "same", {"image": images})
        np.testing.assert_array_equal(back["image"], images)
    assert called(pool, "counted", {"x": np.arange(1)})["x"] == 1
    assert called(pool, "counted", {"x": np.arange(1)})["x"] == 2


def test_what_a_function_prints_and_reads_is_no_part_of_the_talk(preparers):
    assert called(preparers(), "prints", {"x": np.arange(2)})["x"].tolist() == [0, 1]


def test_an_exception_is_told_with_type_message_and_line(preparers):
    pool = preparers()
    before = called(pool, "process", {"x": np.arange(1)})["x"][0]
    text = failed(pool, "raises")
    assert "ValueError: no such colour: ä (" in text
    line = textwrap.dedent(FUNCTIONS).splitlines().index('    raise ValueError("no such colour: ä")') + 1
    assert text.endswith(f"functions.py, line {line})")
    assert "SystemExit: not today" in failed(pool, "leaves")
    # and is no reason for another process
    assert called(pool, "process", {"x": np.arange(1)})["x"][0] == before


@pytest.mark.parametrize(
    ("function", "what"),
    [
        ("no_dict", "it should give a dict of arrays by names, and gave list"),
        ("no_columns", "it gave no columns"),
        ("fewer", "it gave 2 rows of column 'x' for 3 rows"),
        ("one_value", "it gave one value of column 'x' for 3 rows"),
        ("complex_numbers", "column 'x': arrays of type complex128 cannot be read"),
        ("objects", "column 'x', row 0: objects must be text or bytes, not object"),
        ("mixed", "column 'x', row 0: objects must be bytes, as others are, not str"),
        ("missing", "module 'functions' has no 'missing'"),
        ("no_function", "'no_function' is of type int, which cannot be called"),
    ],
)
def test_a_wrong_result_and_a_wrong_name_are_told(preparers, function, what):
    assert what in failed(preparers(), function)


def test_a_module_that_is_not_there_or_cannot_be_imported_is_told(preparers):
    pool = preparers()
    for name, what in [
        ("nowhere:f", "nowhere:f: there is no module 'nowhere' in "),
        ("functions.inner:f", "there is no module 'functions.inner'"),
        ("broken:f", "ModuleNotFoundError: No module named 'no_such_module' ("),
        ("wrong:f", "SyntaxError"),
    ]:
        with pytest.raises(RuntimeError) as raised:
            pool.call(name, [packed("x", np.arange(1))])
        assert what in str(raised.value)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        ("exits", "the process that called it ended with exit status 3; it wrote last:\ngoing down"),
        ("killed", "the process that called it was ended by SIGKILL"),
        ("crashes", "the process that called it was ended by SIGSEGV"),
    ],
)
def test_a_process_that_ends_fails_its_own_call_only(preparers, function, what):
    pool = preparers(2)
    one = called(pool, "process", {"x": np.arange(1)})["x"][0]
    assert what in failed(pool, function)
    other = called(pool, "process", {"x": np.arange(1)})["x"][0]
    assert one != other
    assert called(pool, "same", {"x": np.arange(3)})["x"].tolist() == [0, 1, 2]


def test_a_process_that_only_closes_its_socket_is_ended(tmp_path):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec 0<&-\nexec sleep {SECONDS}\n")
    python.chmod(0o755)
    pool = _native.Preparers(str(python), 1)
    assert "the process that called it closed its socket, and was ended" in failed(pool, "same")
    assert gone(sleeping)


def sleeping():
    """Processes that the functions above have started."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if line.strip().endswith(f"sleep {SECONDS}")]


def gone(what, seconds=10):
    """Waits until something is there no more."""
    until = time.monotonic() + seconds
    while what() and time.monotonic() < until:
        time.sleep(0.05)
    return not what()


def test_a_function_that_hangs_is_ended_with_what_it_started(preparers):
    pool = preparers(seconds=5)
    started = time.monotonic()
    assert "it did not return within 5 s, and its process was ended" in failed(pool, "hangs")
    assert time.monotonic() - started < 30
    assert gone(sleeping)
    assert called(pool, "same", {"x": np.arange(3)})["x"].tolist() == [0, 1, 2]


def test_a_call_that_is_cancelled_ends_at_once(preparers):
    pool = preparers()
    called(pool, "same", {"x": np.arange(3)})
    threading.Timer(0.3, pool.cancel).start()
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="preparing was cancelled"):
        called(pool, "waits", {"x": np.array([1000.0])})
    assert time.monotonic() - started < 5


def test_several_processes_work_at_once_and_none_more_than_asked_for(preparers):
    pool = preparers(2)
    found = []

    def work():
        called(pool, "waits", {"x": np.array([0.2])})
        found.append(called(pool, "process", {"x": np.arange(1)})["x"][0])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) <= 2


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False


@pytest.mark.parametrize("busy", [None, "waits", "keeps_the_interpreter"])
def test_processes_end_with_the_server_however_it_ends(preparers, tmp_path, busy):
    script = f"""
        import sys, threading, time
        import numpy as np
        from corgipile import _native
        from corgipile.joader._preparer import packed
        pool = _native.Preparers(sys.executable, 1)
        print(pool.call("functions:process", [packed("x", np.arange(1))])["x"][0], flush=True)
        if {busy!r}:
            pool.call("functions:{busy}", [packed("x", np.array([1000.0]))])
        time.sleep(1000)
    """
    package = Path(_native.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{package}"}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        process = int(server.stdout.readline())
        assert not busy or gone(lambda: not (tmp_path / "functions.py.called").exists())
        assert is_alive(process)
        server.send_signal(signal.SIGKILL)
    assert gone(lambda: is_alive(process))


def test_processes_end_with_the_pool(preparers):
    pool = preparers()
    process = called(pool, "process", {"x": np.arange(1)})["x"][0]
    assert is_alive(process)
    del pool
    assert gone(lambda: is_alive(process))


def test_damaged_rows_are_an_error():
    slot = _native.dict_to_slot([packed("x", np.arange(100))])
    stored = np.zeros(len(slot), np.uint8)
    slot.write(stored)
    assert _native.slot_to_dict(stored)["x"].tolist() == list(range(100))
    with pytest.raises(_native.SourceError, match="the stored rows are damaged"):
        _native.slot_to_dict(stored[:-100].copy())
    with pytest.raises(ValueError, match="failed to write whole buffer"):
        slot.write(stored[:-1])


def stored(table):
    """Rows of pyarrow as the bytes of a slot: a stream of Arrow's format."""
    pyarrow = pytest.importorskip("pyarrow")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table.combine_chunks().to_batches()[0])
    return np.frombuffer(sink.getvalue(), np.uint8)


def test_columns_of_every_type_of_arrow_become_arrays():
    pyarrow = pytest.importorskip("pyarrow")
    pairs = pyarrow.list_(pyarrow.float32(), 2)
    columns = {
        "pairs": pyarrow.array([[1, 2], None, [3, None]], pairs),
        "pairs of pairs": pyarrow.array([[[1, 2], None], None, [[3, 4], [5, 6]]], pyarrow.list_(pairs, 2)),
        "three": pyarrow.array([b"abc", b"def", b"ghi"], pyarrow.binary(3)),
        "words": pyarrow.array(["a", None, "a"]).dictionary_encode(),
        "codes": pyarrow.array([7, 8, 7]).dictionary_encode(),
        "large": pyarrow.array(["a", None, "c"], pyarrow.large_string()),
        "view": pyarrow.array(["a", None, "a text that is too long for a view"], pyarrow.string_view()),
        "bytes": pyarrow.array([b"a", None, b""], pyarrow.large_binary()),
        "money": pyarrow.array([None, 1, 2], pyarrow.decimal128(10, 2)),
        "lists": pyarrow.array([[1], None, []], pyarrow.list_(pyarrow.int16())),
        "days": pyarrow.array([0, None, 2], pyarrow.date32()),
        "zoned": pyarrow.array([0, None, 2], pyarrow.timestamp("us", "UTC")),
    }
    back = _native.slot_to_dict(stored(pyarrow.table(columns)))
    assert list(back) == list(columns)
    nan = np.nan
    np.testing.assert_array_equal(back["pairs"], np.array([[1, 2], [nan, nan], [3, nan]], np.float32))
    missing = [[nan, nan], [nan, nan]]
    np.testing.assert_array_equal(back["pairs of pairs"], [[[1, 2], [nan, nan]], missing, [[3, 4], [5, 6]]])
    assert back["three"].tolist() == [list(b"abc"), list(b"def"), list(b"ghi")]
    assert back["words"].tolist() == ["a", None, "a"]
    assert back["codes"].tolist() == [7, 8, 7]
    assert back["large"].tolist() == ["a", None, "c"]
    assert back["view"].tolist() == ["a", None, "a text that is too long for a view"]
    assert back["bytes"].tolist() == [b"a", None, b""]
    np.testing.assert_array_equal(back["money"], [nan, 1, 2])
    assert back["lists"][0].dtype == np.int16
    assert [None if item is None else item.tolist() for item in back["lists"]] == [[1], None, []]
    np.testing.assert_array_equal(back["days"], np.array([0, "NaT", 2], "M8[D]"))
    np.testing.assert_array_equal(back["zoned"], np.array([0, "NaT", 2], "M8[us]"))


def test_what_has_no_array_is_told_with_its_column():
    pyarrow = pytest.importorskip("pyarrow")
    for values, what in [
        (pyarrow.array([1, None]), "column 'x': a value is missing, and arrays of whole numbers have no place"),
        (pyarrow.array([{"a": 1}, None]), "column 'x': there are no objects for values of type Struct"),
    ]:
        with pytest.raises(ValueError) as raised:
            _native.slot_to_dict(stored(pyarrow.table({"x": values})))
        assert what.replace("'", '"') in str(raised.value)


def test_a_slot_is_a_stream_that_others_read():
    pyarrow = pytest.importorskip("pyarrow")
    images = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    slot = _native.dict_to_slot([packed("image", images), packed("text", np.array(["a", None], dtype=object))])
    bytes_of = np.zeros(len(slot), np.uint8)
    slot.write(bytes_of)
    table = pyarrow.ipc.open_stream(bytes_of).read_all()
    assert table["image"].to_pylist() == images.tolist()
    assert table["text"].to_pylist() == ["a", None]
