# SPDX-License-Identifier: Apache-2.0
"""Download a URL with curl (no impersonation), HTTP/3 only: `get_curl.py OUT URL [FIELD: VALUE...]`.

Write the body to file OUT, and print status and header fields as JSON. Three fields are options and are not sent: `method`,
`body`, and `again`, which repeats the request on the same connection once OUT has been removed.
"""

import json
import sys
import time
from pathlib import Path

from curl_cffi import requests


def main(out: str, url: str, *fields: str) -> None:
    headers = dict(field.split(": ", 1) for field in fields)
    method = headers.pop("method", "GET")
    body = headers.pop("body", None)
    times = 2 if headers.pop("again", None) else 1
    # The caller limits the time. The library's own limit is 30 s.
    with requests.Session(http_version="v3only", verify=False, timeout=None) as session:
        for i in range(times):
            while i > 0 and Path(out).exists():
                time.sleep(0.01)
            response = session.request(
                method,
                url,
                headers=headers,
                data=body.encode() if body else None,
                allow_redirects=False,
            )
            part = Path(f"{out}.part")
            part.write_bytes(response.content)
            part.rename(out)
    print(json.dumps({"status": response.status_code, **dict(response.headers)}))


main(*sys.argv[1:])
