"""Delays what goes through a Unix socket, as a network does: proxy.py FROM TO MILLISECONDS.

Each direction takes half of them. FROM is made, TO is a server's. All bytes keep their sequence, and any number of
them is on the way at the same time.
"""

import asyncio
import contextlib
import sys
from pathlib import Path


async def carry(reader, writer, seconds):
    """Passes on each piece that is read, this many seconds later."""
    loop = asyncio.get_running_loop()
    pieces = asyncio.Queue()

    async def send():
        while (piece := await pieces.get()) is not None:
            due, data = piece
            await asyncio.sleep(max(0.0, due - loop.time()))
            writer.write(data)
            await writer.drain()
        writer.close()

    sender = asyncio.create_task(send())
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            pieces.put_nowait((loop.time() + seconds, data))
    pieces.put_nowait(None)
    with contextlib.suppress(ConnectionError):
        await sender


async def main(source, target, seconds):
    async def connect(reader, writer):
        to_reader, to_writer = await asyncio.open_unix_connection(target)
        await asyncio.gather(carry(reader, to_writer, seconds), carry(to_reader, writer, seconds))

    server = await asyncio.start_unix_server(connect, source)
    Path(source).chmod(0o777)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]) / 2000))
