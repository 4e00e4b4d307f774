# SPDX-License-Identifier: Apache-2.0
"""The module of types of the drivers' Thrift interface."""
