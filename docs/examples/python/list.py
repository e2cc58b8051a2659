#!/usr/bin/env python3
"""Prints the state of every backend, or of those of some pools, a page at a time.

    list.py [--socket PATH] [POOL...]

It needs the same modules as drain.py.
"""

import argparse
import sys

import grpc
from spillway.v1 import spillway_pb2 as spillway
from spillway.v1 import spillway_pb2_grpc as spillway_grpc


def backends(channel, pools):
    """The backends of these pools, or all."""
    stub = spillway_grpc.SpillwayStub(channel)
    request = spillway.StatusRequest(pools=pools, page_size=1000)
    while True:
        page = stub.Status(request)
        yield from page.backends
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pools", nargs="*", metavar="POOL")
    parser.add_argument("--socket", default="/run/spillway/spillwayd.sock")
    arguments = parser.parse_args()
    with grpc.insecure_channel(f"unix:{arguments.socket}") as channel:
        try:
            for backend in backends(channel, arguments.pools):
                word = spillway.BackendState.Name(backend.state)
                word = word.removeprefix("BACKEND_STATE_").lower()
                print(backend.pool, backend.address, word)
        except grpc.RpcError as error:
            sys.exit(f"{error.code().name}: {error.details()}")


if __name__ == "__main__":
    main()
