# SPDX-License-Identifier: Apache-2.0
"""Servers of VIPs from DNS, files, HTTP endpoints and Kubernetes."""
