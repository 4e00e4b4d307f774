# SPDX-License-Identifier: Apache-2.0
"""The file for `mn --custom`: `--switch soft`, `--host soft` and `--link soft`."""

import __main__
from softswitch.mininet import SoftHost, SoftLink, SoftSwitch

switches = {"soft": SoftSwitch}
hosts = {"soft": SoftHost}
links = {"soft": SoftLink}
# mn 2.3.0 does not read `links` from this file, because a comma is missing in its list of names.
getattr(__main__, "LINKS", {}).update(links)
