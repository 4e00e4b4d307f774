# SPDX-License-Identifier: Apache-2.0
"""`make demo QDSR=1`: a page of many pictures, each from one of several real servers (QDSR)."""
