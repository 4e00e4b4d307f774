# SPDX-License-Identifier: Apache-2.0
"""The engine for many sites: NATS JetStream provides consensus (a Raft group per stream), the log and the mirrors.

Records with the same replica set form a placement group and share a stream. The state of a record is the last valid message of its
subject in the stream (see `log`). Every write names the message that it follows, so each record's writes are totally ordered,
whichever server writes.
"""
