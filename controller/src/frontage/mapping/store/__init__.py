# SPDX-License-Identifier: Apache-2.0
"""The database that the controllers of all sites share: measurements, deployments, demand, and the computed tables."""
