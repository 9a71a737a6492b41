"""Ctrl-C works, no matter who waits for whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

CODE = """
import sys, time, numpy as np
workers = int(sys.argv[1])
if workers:
    import torch
import corgipile

class Slow:
    asked = False
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        if not self.asked:
            self.asked = True
            print("asked", flush=True)
        time.sleep(0.2)
        return i

if __name__ == "__main__":
    ds = corgipile.CorgiPileDataset(corgipile.map_style(Slow()), buffer_size="100%")
    try:
        for batch in corgipile.Loader(ds, num_workers=workers):
            pass
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.alone
@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_ends_a_wait_within_a_second(workers: int, tmp_path) -> None:
    if workers:
        pytest.importorskip("torch")
    script = tmp_path / "slow.py"
    script.write_text(CODE)
    command = [sys.executable, str(script), str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    time.sleep(0.1)  # the one that wants the item is waiting by now
    begin = time.monotonic()
    # as a terminal does: to all processes
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - begin < (1.0 if workers == 0 else 3.0)
    assert process.wait(timeout=20) == 0
