# SPDX-License-Identifier: Apache-2.0
"""The tables of the store. The first three are those of Artemis (sections 3.3 and 3.4.2); the others hold what is computed from them,
and the demand of the services that are placed by it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, SmallInteger, Table, Text

VERSION = 1
"""The version of this schema. A store with another version is refused."""

metadata = MetaData()


def _version() -> Column[int]:
    """Return the column for the number of the transaction that wrote the row. Readers ask for rows above the last one they have seen."""
    return Column("version", BigInteger, nullable=False, index=True)


service_deployment = Table(
    "service_deployment",
    metadata,
    Column("name", Text, primary_key=True),
    Column("site", SmallInteger, primary_key=True),
    Column("present", Boolean, nullable=False, comment="false: removed, or no replica there accepts"),
    Column("reported", Boolean, nullable=False, comment="by dispatchers; otherwise declared by an operator"),
    _version(),
)
latency_measurement = Table(
    "latency_measurement",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("site", SmallInteger, primary_key=True),
    Column("source", Text, primary_key=True, comment="active or passive"),
    Column("rtt_us", Float, nullable=False, comment="minimum of the window; infinite: expired"),
    Column("previous_us", Float, comment="minimum of the window before"),
    Column(
        "time_window",
        BigInteger,
        nullable=False,
        comment="window number since 1970; for an expired row, that of the expiry",
    ),
    Column("count", BigInteger, nullable=False, comment="samples so far"),
    Column("measured_at", Float, nullable=False, comment="Unix time of the last sample"),
    _version(),
    Index("latency_measurement_measured_at", "measured_at"),
)
replica_deployment = Table(
    "replica_deployment",
    metadata,
    Column("site", SmallInteger, primary_key=True),
    Column("sid", Integer, primary_key=True),
    Column("service", Text, primary_key=True),
    Column("address", Text, nullable=False),
    Column("load", Float, nullable=False, comment="0 to 1"),
    Column("weight", Float, nullable=False),
    Column("accepting", Boolean, nullable=False),
    Column("seen_at", Float, nullable=False, comment="Unix time"),
    _version(),
)
service = Table(
    "service",
    metadata,
    Column("name", Text, primary_key=True),
    Column("number", Integer, nullable=False, unique=True),
    Column("redundancy", SmallInteger, nullable=False),
    Column("policy", Text, nullable=False),
    Column("alpn", Text, nullable=False, comment="separated by spaces"),
    _version(),
)
client_region = Table(
    "client_region",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("region", Integer, nullable=False, comment="0: removed"),
    _version(),
)
deployment_choice = Table(
    "deployment_choice",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("sites", Text, nullable=False, comment="ids, separated by spaces; empty: removed"),
    Column("redundancy", SmallInteger, nullable=False),
    Column("choices", LargeBinary, nullable=False, comment="[region][redundancy] site ids of one byte, best first"),
    _version(),
)
service_choice = Table(
    "service_choice",
    metadata,
    Column("name", Text, primary_key=True),
    Column("deployment", Integer, nullable=False, comment="deployment_choice.number; 0: no site"),
    _version(),
)
site_order = Table(
    "site_order",
    metadata,
    Column("site", SmallInteger, primary_key=True),
    Column("sites", Text, nullable=False, comment="all site ids, nearest first"),
    _version(),
)
service_placement = Table(
    "service_placement",
    metadata,
    Column("name", Text, primary_key=True),
    Column("site", SmallInteger, primary_key=True),
    Column("stage", Text, nullable=False, comment="frontage.mapping.demand.moves.Stage"),
    Column("since", Float, nullable=False, comment="Unix time at which the stage began"),
    _version(),
)
placement_view = Table(
    "placement_view",
    metadata,
    Column("name", Text, primary_key=True),
    Column("document", Text, nullable=False, comment="JSON: where the service runs and why, as of the last epoch"),
    _version(),
)
load_report = Table(
    "load_report",
    metadata,
    Column("service", Text, primary_key=True),
    Column("site", SmallInteger, primary_key=True, comment="the site at which the clients entered"),
    Column("regions", Text, nullable=False, comment="JSON: handshakes by region, sparse; of the last report that had regions"),
    Column("rate", Float, nullable=False, comment="handshakes per second from all regions, in the last report"),
    Column("requests", BigInteger, nullable=False, comment="handshakes in all reports so far"),
    Column("seconds", Float, nullable=False, comment="time that all reports cover"),
    Column("reports", BigInteger, nullable=False, comment="number of reports so far"),
    Column("reported_at", Float, nullable=False, comment="Unix time"),
    _version(),
)
handshake_wait = Table(
    "handshake_wait",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("site", SmallInteger, primary_key=True),
    Column("waited_us", Float, nullable=False, comment="sum over all handshakes since the row was last taken"),
    Column("handshakes", BigInteger, nullable=False),
    _version(),
)
client_prefix = Table(
    "client_prefix",
    metadata,
    Column("prefix", Text, primary_key=True, comment="clients in no region whose handshakes a switch has seen"),
    Column("seen_at", Float, nullable=False, comment="Unix time"),
    _version(),
)
counter = Table("counter", metadata, Column("name", Text, primary_key=True), Column("value", BigInteger, nullable=False))
lease = Table(
    "lease",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("expires_at", Float, nullable=False, comment="Unix time"),
    Column("version", BigInteger, nullable=False),
)
