"""relay.py PORT TO HOW: takes connections on PORT and passes them to TO on this machine, reading everything.
HOW: as-it-is; flip: one bit of what the server sends after a while; repeat: a piece of it twice; swap: two pieces in the other
order; cut: a piece left out; insert: a piece of zeros; replay: at each new connection, what was sent on the one before is sent
to TO once more, and how many bytes came back is printed."""
import asyncio
import sys

port, to, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
AFTER = 4096  # bytes from the server: beyond the handshake, in the parameters
said = []


async def replay(data):
    reader, writer = await asyncio.open_connection("127.0.0.1", to)
    writer.write(data)
    got = b""
    try:
        while part := await asyncio.wait_for(reader.read(65536), 4):
            got += part
    except (asyncio.TimeoutError, ConnectionError):
        pass
    print(len(got), "bytes", flush=True)
    writer.close()


async def copy(reader, writer, spoils, heard):
    count, done = 0, False
    try:
        while data := await reader.read(1024):
            heard += data
            count += len(data)
            if spoils and not done and count > AFTER and len(data) > 64:
                done = True
                half = len(data) // 2
                data = {
                    "flip": data[:half] + bytes([data[half] ^ 1]) + data[half + 1:],
                    "repeat": data + data,
                    "swap": data[half:] + data[:half],
                    "cut": data[half:],
                    "insert": data + bytes(64),
                }[how]
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


async def serve(reader, writer):
    try:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", to)
    except OSError:
        writer.close()
        return
    heard = bytearray()
    if how == "replay" and said:
        asyncio.create_task(replay(bytes(said[-1])))
    said.append(heard)
    await asyncio.gather(copy(reader, server_writer, False, heard),
                         copy(server_reader, writer, how not in ("as-it-is", "replay"), bytearray()))


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main())
