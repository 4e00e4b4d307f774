# SPDX-License-Identifier: Apache-2.0
"""The reader of Prometheus' text format."""

from frontage_testbed.metricsclient import parse

TEXT = """\
# HELP frontage_phase 1 for what the controller is doing
# TYPE frontage_phase gauge
frontage_phase{phase="installing"} 0.0
frontage_phase{phase="installed"} 1.0
frontage_switch_connections_total 2.0
frontage_dropped_packets_total{reason="no-route"} 3.0
frontage_dropped_packets_total{reason="ttl"} 0.0
frontage_server_packets_total{vip="web",server="s1",direction="up"} 1.5e+06
frontage_server_packets_total{vip="web",server="s2",direction="up"} 3.0
frontage_server_packets_total{vip="web6",server="s1",direction="up"} 9.0
"""


def test_values_are_summed_by_name_and_labels() -> None:
    metrics = parse(TEXT)
    assert metrics.total("frontage_phase", phase="installed") == 1
    assert metrics.total("frontage_switch_connections_total") == 2
    assert metrics.total("frontage_server_packets_total", vip="web") == 1_500_003
    assert metrics.total("frontage_missing") == 0
    assert metrics.by("reason", "frontage_dropped_packets_total") == {"no-route": 3, "ttl": 0}
    assert metrics.by("vip", "frontage_server_packets_total") == {"web": 1_500_003, "web6": 9}
