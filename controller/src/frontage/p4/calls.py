# SPDX-License-Identifier: Apache-2.0
"""Requests to the switch: a log line and a span for each, with the device, the number of updates, the duration and the result."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from frontage.observe import tracing
from frontage.observe.logs import fields

log = logging.getLogger(__name__)

_SERVICE = {"rpc.system": "grpc", "rpc.service": "p4.v1.P4Runtime"}


class WriteCall:
    """A write request that has been sent. `result` waits for the response."""

    def __init__(self, call: Any, device_id: int, verb: str, updates: int):
        self._call = call
        self._device_id = device_id
        self._verb = verb
        self._updates = updates
        self._started = time.monotonic()
        self._seconds = 0.0
        self._ended: int | None = None
        self._span = tracing.begin("P4Runtime Write", **_SERVICE, device_id=device_id, verb=verb, updates=updates)
        # The waiting task may be busy when the response arrives.
        call.add_done_callback(self._on_end)

    async def result(self) -> None:
        """Wait for the response. Raises AioRpcError."""
        result = "OK"
        try:
            await self._call
        except grpc.aio.AioRpcError as error:
            result = error.code().name
            self._span.fail(error)
            raise
        except BaseException:
            result = "CANCELLED"
            raise
        finally:
            self._span.end(self._ended)
            log.log(
                logging.INFO if result == "OK" else logging.WARNING,
                "write: %d updates (%s): %s, %.6f s", self._updates, self._verb, result, self._seconds,
                extra=fields(
                    device_id=self._device_id, updates=self._updates, verb=self._verb, seconds=round(self._seconds, 6), result=result
                ),
            )  # fmt: skip

    def _on_end(self, _call: Any) -> None:
        self._seconds, self._ended = time.monotonic() - self._started, time.time_ns()


@contextmanager
def reading(device_id: int, entities: int) -> Iterator[None]:
    """Read in a span."""
    with tracing.span("P4Runtime Read", **_SERVICE, device_id=device_id, entities=entities):
        started = time.monotonic()
        yield
        seconds = round(time.monotonic() - started, 6)
        log.debug("read: %.6f s", seconds, extra=fields(device_id=device_id, entities=entities, seconds=seconds))
