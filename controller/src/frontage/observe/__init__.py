# SPDX-License-Identifier: Apache-2.0
"""Logs and traces of the controller's work, with one id from a request to each write."""
