# SPDX-License-Identifier: Apache-2.0
"""A package of the drivers' Thrift interface, which tests import without using it."""
