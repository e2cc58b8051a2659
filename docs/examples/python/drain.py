#!/usr/bin/env python3
"""Takes a backend out of service for maintenance, and puts it back.

    drain.py [--socket PATH] POOL ADDRESS           new connections go elsewhere, open ones stay
    drain.py [--socket PATH] POOL ADDRESS --undo    it takes new connections again

A client made from the .proto files as they are. It needs grpcio, and the modules that its compiler
writes from Spillway's proto directory:

    python3 -m pip install -r docs/examples/python/requirements.txt
    python3 -m grpc_tools.protoc -I proto --python_out=OUT --grpc_python_out=OUT \
        proto/spillway/v1/*.proto
    PYTHONPATH=OUT python3 docs/examples/python/drain.py web 10.1.0.11
"""

import argparse
import sys

import grpc
from google.protobuf.field_mask_pb2 import FieldMask
from spillway.v1 import configuration_pb2 as configuration
from spillway.v1 import objects_pb2 as objects
from spillway.v1 import objects_pb2_grpc as objects_grpc
from spillway.v1 import spillway_pb2 as spillway
from spillway.v1 import spillway_pb2_grpc as spillway_grpc


def drain(channel, pool, address, admin_state):
    """Sets the admin_state of a backend, unless somebody else changed the backend meanwhile."""
    objects_api = objects_grpc.ObjectsStub(channel)
    found = objects_api.GetBackend(objects.GetBackendRequest(pool=pool, address=address))
    return objects_api.UpdateBackend(
        objects.UpdateBackendRequest(
            pool=pool,
            backend=configuration.Backend(address=address, admin_state=admin_state),
            update_mask=FieldMask(paths=["admin_state"]),
            etag=found.etag,
        )
    )


def state(channel, pool, address):
    """The backend as the packet path has it now."""
    status = spillway_grpc.SpillwayStub(channel).Status(spillway.StatusRequest())
    return next(b for b in status.backends if (b.pool, b.address) == (pool, address))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pool")
    parser.add_argument("address")
    parser.add_argument("--undo", action="store_true", help="put it back")
    parser.add_argument("--socket", default="/run/spillway/spillwayd.sock")
    arguments = parser.parse_args()
    admin_state = (
        configuration.ADMIN_STATE_ACTIVE if arguments.undo else configuration.ADMIN_STATE_DRAIN
    )
    # The authority is of no meaning on a unix socket; without this it would be its path.
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix:{arguments.socket}", options=options) as channel:
        try:
            changed = drain(channel, arguments.pool, arguments.address, admin_state)
            now = state(channel, changed.pool, changed.backend.address)
        except grpc.RpcError as error:
            field = dict(error.trailing_metadata() or ()).get("spillway-field")
            where = f" ({field})" if field else ""
            sys.exit(f"{error.code().name}{where}: {error.details()}")
    for change in changed.changes:
        print(f"{change.object}: {'; '.join(change.details)}")
    print(f"generation {changed.generation}: {now.address} is {now.state} ({now.reason})")


if __name__ == "__main__":
    main()
