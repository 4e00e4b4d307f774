"""What a schema cannot say of the record store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frontage.findings import Finding

if TYPE_CHECKING:
    from frontage.config import Config


def check(config: Config) -> Iterator[Finding]:
    settings = config.records
    if settings is None or settings.file is not None or config.site is not None:
        return
    what = "records are kept at sites, and the file does not say which one this is"
    yield Finding(("records", "store"), what, "add `site` with `id` and `vtep`, or use sqlite:///FILE")
