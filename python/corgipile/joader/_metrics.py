"""A server's numbers for Prometheus, in its text format, over HTTP."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import _admin

# name, kind, what it is, key of status()
_OF_SERVER = (
    ("memory_bytes", "gauge", "Memory for elements.", "memory"),
    ("memory_used_bytes", "gauge", "Memory in use.", "used"),
    ("elements", "gauge", "Elements in the memory.", "elements"),
    ("loads_total", "counter", "Elements that were read and prepared.", "loads"),
    ("loaded_bytes_total", "counter", "Bytes of elements that were read and prepared.", "bytes_loaded"),
    ("saved_bytes_total", "counter", "Bytes that jobs got without a read of their own.", "bytes_saved"),
    ("evictions_total", "counter", "Elements that went to make room.", "evictions"),
    ("errors_total", "counter", "Elements that could not be read or prepared.", "errors"),
    ("outside_total", "counter", "Elements that found no room.", "outside"),
    ("uptime_seconds", "gauge", "Seconds since the server began.", "seconds"),
)
_OF_JOBS = (
    ("job_epoch", "gauge", "Epoch in which the job draws.", "epoch"),
    ("job_elements_left", "gauge", "Elements that it has still to draw in it.", "left"),
    ("job_elements_total", "counter", "Elements that it got.", "elements"),
    ("job_rows_total", "counter", "Rows that it got.", "rows"),
    ("job_loads_total", "counter", "Elements that were read for it.", "loads"),
    ("job_merged_total", "counter", "Elements that were being read for another job when it drew them.", "merged"),
    ("job_hits_total", "counter", "Elements that were there when it drew them.", "hits"),
    ("job_again_total", "counter", "Elements that were read again for it.", "again"),
    ("job_outside_total", "counter", "Elements that it got outside of the memory.", "outside"),
    ("job_errors_total", "counter", "Elements that it got as an error.", "errors"),
    ("job_held_elements", "gauge", "Elements that it holds.", "held"),
    ("job_stalled", "gauge", "1 if it takes nothing although there is something.", "stalled"),
)

#: Connections at a time.
_MOST = 16


def text_of(status: dict[str, Any]) -> str:
    """The result of `joader.status` in the format of Prometheus."""
    return "".join(f"{line}\n" for line in _lines(status))


def _lines(status: dict[str, Any]) -> Iterator[str]:
    for name, kind, what, key in _OF_SERVER:
        yield from _head(name, kind, what)
        yield f"joader_{name} {status[key]}"
    for name, kind, what, key in _OF_JOBS:
        yield from _head(name, kind, what)
        for job in status["jobs"]:
            labels = f'job="{job["job"]}",name="{_quoted(job["name"])}",dataset="{_quoted(job["data_set"])}"'
            yield f"joader_{name}{{{labels}}} {int(job[key])}"


def _head(name: str, kind: str, what: str) -> Iterator[str]:
    yield f"# HELP joader_{name} {what}"
    yield f"# TYPE joader_{name} {kind}"


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class _Server(ThreadingHTTPServer):
    """A thread for each connection, and the oldest goes where there are many: those that say nothing keep no one out,
    and take neither threads nor open files that the jobs need."""

    daemon_threads = True
    request_queue_size = 128  # with 5, as it is, those that come at once wait for seconds to be let in

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: list[socket.socket] = []
        self._changing = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changing:
            self._open.append(request)
            if len(self._open) > _MOST:
                # its thread ends by itself then
                _end(self._open.pop(0))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._changing:
            if request in self._open:
                self._open.remove(request)
        super().shutdown_request(request)


def _end(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class Metrics:
    """An HTTP server that answers /metrics until it is closed."""

    def __init__(self, server: str, address: str) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"metrics: {address!r} is not an address such as 127.0.0.1:9464")

        class Handler(BaseHTTPRequestHandler):
            # seconds in which something has to come
            timeout = 5

            def do_GET(self) -> None:
                if self.path.split("?")[0] != "/metrics":
                    self.send_error(404)
                    return
                body = text_of(_admin.status(server)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = _Server((host.strip("[]"), int(port)), Handler)
        #: The port that was taken, if 0 was asked for.
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answers no more."""
        self._server.shutdown()
        self._server.server_close()
