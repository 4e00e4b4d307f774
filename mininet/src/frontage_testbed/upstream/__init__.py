# SPDX-License-Identifier: Apache-2.0
"""A data centre behind two upstream routers, from which its switch learns routes by BGP."""
