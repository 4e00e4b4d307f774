# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of the controller, which the command line uses, too.

`app` has the routes, `backend` what they act on, `server` listens, and `client` sends requests. Errors are problem details
(RFC 9457).
"""
