"""Asks for URLs by curl (impersonating nobody), HTTP/3 only: `get_curl.py OUT URL [FIELD: VALUE...]`.

The body goes to file OUT; status and fields come out as JSON.
"""

import json
import sys
from pathlib import Path

from curl_cffi import requests


def main(out: str, url: str, *fields: str) -> None:
    method = "GET"
    headers = dict(field.split(": ", 1) for field in fields)
    method = headers.pop("method", method)
    body = headers.pop("body", None)
    answer = requests.request(
        method,
        url,
        http_version="v3only",
        verify=False,
        headers=headers,
        data=body.encode() if body else None,
        allow_redirects=False,
    )
    Path(out).write_bytes(answer.content)
    print(json.dumps({"status": answer.status_code, **dict(answer.headers)}))


main(*sys.argv[1:])
