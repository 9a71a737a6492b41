"""A plugin of pytest that sums up as Rust's tests do, for scripts/test, which counts all tests."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Writes the tests that failed or were skipped, and the numbers."""
    stats = terminalreporter.stats
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    skipped = stats.get("skipped", [])
    for report in failed:
        terminalreporter.write_line(f"test {report.nodeid} ... FAILED")
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line(f"test {report.nodeid} ... ignored, {reason.removeprefix('Skipped: ')}")
    passed = len(stats.get("passed", []))
    result = "FAILED" if failed else "ok"
    counts = f"{passed} passed; {len(failed)} failed; {len(skipped)} ignored; 0 measured; 0 filtered out"
    terminalreporter.write_line(f"test result: {result}. {counts}")
