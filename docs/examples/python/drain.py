#!/usr/bin/env python3
"""Takes a backend out of service for maintenance, and puts it back.

    drain.py [--socket PATH] POOL ADDRESS           new connections go elsewhere for two hours, open ones stay
    drain.py [--socket PATH] POOL ADDRESS --undo    it takes new connections again

A client made from the .proto files as they are. It needs grpcio and grpcio-status, and the modules that its compiler
writes from Spillway's proto directory:

    python3 -m pip install -r docs/examples/python/requirements.txt
    python3 -m grpc_tools.protoc -I proto --python_out=OUT --grpc_python_out=OUT \
        proto/spillway/v1/*.proto
    PYTHONPATH=OUT python3 docs/examples/python/drain.py web 10.1.0.11
"""

import argparse
import sys

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from spillway.v1 import overrides_pb2 as overrides
from spillway.v1 import overrides_pb2_grpc as overrides_grpc
from spillway.v1 import spillway_pb2 as spillway
from spillway.v1 import spillway_pb2_grpc as spillway_grpc

TWO_HOURS = Duration(seconds=7200)


def drain(channel, pool, address):
    """Drains a backend in one pool, beside the configuration."""
    return overrides_grpc.OverridesStub(channel).SetOverrides(
        overrides.SetOverridesRequest(
            targets=[overrides.OverrideTarget(pool=pool, backend=address)],
            kind=overrides.OVERRIDE_KIND_DRAIN,
            duration=TWO_HOURS,
            reason="maintenance",
        )
    )


def undrain(channel, pool, address):
    """Ends that. A drain that is not there is no error."""
    name = f"pools/{pool}/backends/{address}/drain"
    return overrides_grpc.OverridesStub(channel).RemoveOverrides(
        overrides.RemoveOverridesRequest(names=[name])
    )


def state(channel, pool, address):
    """The backend as the packet path has it now."""
    return spillway_grpc.SpillwayStub(channel).GetBackendStatus(
        spillway.GetBackendStatusRequest(pool=pool, address=address)
    )


def reason(error):
    """Why the daemon refused a call, as a word for programs: ErrorReason of errors.proto."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == "spillway":
            return info.reason
    return error.code().name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pool")
    parser.add_argument("address")
    parser.add_argument("--undo", action="store_true", help="put it back")
    parser.add_argument("--socket", default="/run/spillway/spillwayd.sock")
    arguments = parser.parse_args()
    change = undrain if arguments.undo else drain
    with grpc.insecure_channel(f"unix:{arguments.socket}") as channel:
        try:
            changed = change(channel, arguments.pool, arguments.address)
            now = state(channel, arguments.pool, arguments.address)
        except grpc.RpcError as error:
            sys.exit(f"{reason(error)}: {error.details()}")
    for warning in changed.warnings:
        print(f"warning: {warning.text}", file=sys.stderr)
    if changed.unstored:
        print(f"warning: in memory only: {changed.unstored}", file=sys.stderr)
    word = spillway.BackendState.Name(now.state).removeprefix("BACKEND_STATE_").lower()
    print(f"{now.address} is {word} ({now.reason.text})")


if __name__ == "__main__":
    main()
