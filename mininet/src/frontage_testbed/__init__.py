# SPDX-License-Identifier: Apache-2.0
"""Testbeds of network namespaces, and what measures them.

The library under the demos (`frontage_demo`), the tests, `clients/` and `bench/`:

- `sandbox` runs a function in PID, network and mount namespaces of its own, which the kernel removes afterwards;
- `nodes` starts a mininet topology and runs programs on its hosts, `processes` and `programs` find and end them;
- `datacentre` is the front end of one data centre: edge switch, controller, servers, client hosts;
- `wan` connects several sites over a switch that delays each pair of locations by its measured round-trip time;
- `wires` delays the links between a few hosts;
- `load` has the workloads, the clients that replay them, and their results;
- `capture`, `metricsclient` and `bpfmap` observe packets, Prometheus metrics and pinned eBPF maps;
- `certificate`, `nameservers`, `natsservers` and `handoffconfig` configure the other programs of a testbed;
- `reporting` draws plots and fills in the templates of pages.

Nothing here imports `frontage_demo`.
"""
