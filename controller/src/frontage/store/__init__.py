# SPDX-License-Identifier: Apache-2.0
"""The store of the configuration and its journal: a file on this machine, or NATS JetStream for several controllers."""
