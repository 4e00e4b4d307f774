# SPDX-License-Identifier: Apache-2.0
"""Publication of service addresses in the record store, for clients that use DNS instead of hashing names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from frontage.service_addresses import Document
from frontage_records.client import RecordClient
from frontage_records.errors import NotFoundError


async def publish(client: RecordClient, documents: Mapping[str, Document]) -> AsyncIterator[str]:
    """Write the documents into the records of their names, and yield the names of changed records.

    Other members of a record are preserved. The later of two concurrent writes wins. Raises RecordError.
    """
    for name, document in documents.items():
        try:
            present = dict((await client.get(name)).value or {})
        except NotFoundError:
            present = {}
        if (wanted := present | document) != present:
            await client.put(name, wanted)
            yield name
