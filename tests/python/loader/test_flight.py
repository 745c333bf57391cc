"""Loader over streams of a Flight server on the loopback."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from helpers.options import group

IDS = list(range(1_000))
BATCHES = pa.table({"id": IDS}).to_batches(max_chunksize=100)


class Server(flight.FlightServerBase):
    """Sends the rows; of the ticket ``b"breaks"`` an error after some, of ``b"endless"`` no end."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.ended = threading.Event()

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.FlightDataStream:
        return flight.GeneratorStream(BATCHES[0].schema, self.send(ticket.ticket))

    def send(self, ticket: bytes) -> Iterator[pa.RecordBatch]:
        try:
            if ticket == b"breaks":
                yield from BATCHES[:3]
                raise flight.FlightServerError("the disk of the server is full")
            if ticket == b"endless":
                yield from itertools.cycle(BATCHES)
            start, stop = map(int, (ticket or b"0:10").split(b":"))
            yield from BATCHES[start:stop]
        finally:
            self.ended.set()

    def get_flight_info(self, context: Any, descriptor: Any) -> flight.FlightInfo:
        endpoints = [flight.FlightEndpoint(t, [self.where]) for t in (b"0:4", b"4:4", b"4:10")]
        return flight.FlightInfo(BATCHES[0].schema, descriptor, endpoints, len(IDS), -1)

    @property
    def where(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture
def client(server: Server) -> Iterator[flight.FlightClient]:
    with flight.connect(server.where) as made:
        yield made


def make_loader(source: Any, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(source, 64, framework="numpy", **group(**options))


def read_ids(loader: Any) -> list[int]:
    ids: list[int] = []
    extend(ids, loader)
    return ids


def extend(ids: list[int], batches: Any) -> None:
    for batch in batches:
        ids += batch["id"].tolist()


def test_a_stream_is_read_once(client: flight.FlightClient) -> None:
    loader = make_loader(client.do_get(flight.Ticket(b"")))
    assert read_ids(loader) == IDS
    with pytest.raises(RuntimeError, match="good for one pass"):
        read_ids(loader)
    assert read_ids(make_loader(client.do_get(flight.Ticket(b"")).to_reader())) == IDS
    assert read_ids(make_loader(client.do_get(flight.Ticket(b"3:3")))) == []


def test_a_function_is_read_each_epoch(client: flight.FlightClient) -> None:
    def fetch() -> Any:
        return client.do_get(flight.Ticket(b""))

    loader = make_loader(fetch, shuffle=True)
    first, second = read_ids(loader), read_ids(loader)
    assert sorted(first) == sorted(second) == IDS
    assert first != second
    ranks = [make_loader(fetch, rank=rank, world_size=3) for rank in range(3)]
    assert {i for loader in ranks for i in read_ids(loader)} == set(IDS)


def test_several_endpoints(client: flight.FlightClient) -> None:
    info = client.get_flight_info(flight.FlightDescriptor.for_path("rows"))

    def fetch() -> Iterator[pa.RecordBatch]:
        for endpoint in info.endpoints:
            yield from client.do_get(endpoint.ticket).to_reader()

    loader = make_loader(fetch)
    assert read_ids(loader) == read_ids(loader) == IDS
    for source in (info, client, info.endpoints[0]):
        with pytest.raises(TypeError, match=r"lambda: client.do_get\(ticket\)"):
            make_loader(source)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_server_stops_sending_when_an_epoch_is_left(
    server: Server, client: flight.FlightClient, prefetch: int
) -> None:
    server.ended.clear()
    stream = client.do_get(flight.Ticket(b"endless"))  # dropping it would end the call, too
    loader = make_loader(stream, prefetch=prefetch)
    batches = iter(loader)
    assert next(batches)["id"].tolist() == IDS[:64]
    batches.close()
    assert server.ended.wait(60)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_of_the_server_is_raised(client: flight.FlightClient, prefetch: int) -> None:
    loader = make_loader(lambda: client.do_get(flight.Ticket(b"breaks")), prefetch=prefetch)
    ids: list[int] = []
    with pytest.raises(flight.FlightServerError, match="disk of the server is full"):
        extend(ids, loader)
    assert ids == IDS[: len(ids)]


KILLED = """
import os, sys
folder = os.path.dirname(sys.argv[1])
sys.path[:0] = [folder, os.path.dirname(folder)]
from test_flight import Server, BATCHES

class Dying(Server):
    def send(self, ticket):
        yield from BATCHES[:5]
        sys.stdin.readline()
        os._exit(9)

server = Dying()
print(server.port, flush=True)
server.serve()
"""


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_server_that_dies_is_an_error(prefetch: int) -> None:
    command = [sys.executable, "-c", KILLED, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with flight.connect(f"grpc://127.0.0.1:{port}") as client:
            loader = make_loader(lambda: client.do_get(flight.Ticket(b"")), prefetch=prefetch)
            batches = iter(loader)
            ids = next(batches)["id"].tolist()
            process.stdin.write(b"\n")
            process.stdin.flush()
            with pytest.raises((flight.FlightError, OSError)):  # gRPC says it in several ways
                extend(ids, batches)
            assert ids == IDS[: len(ids)]
        process.wait(60)
