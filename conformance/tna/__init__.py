# SPDX-License-Identifier: Apache-2.0
"""The public TNA programs and their PTF tests, for `make tna-conformance`."""
