# SPDX-License-Identifier: Apache-2.0
"""Records on a JetStream supercluster of three regions, under load, while servers, regions and links fail."""
