# SPDX-License-Identifier: Apache-2.0
"""The report: a self-contained HTML page with the settings, the results and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import resources

from frontage_testbed.datacentre.settings import POLICIES, Settings
from frontage_testbed.load.workload import Arrival
from frontage_testbed.reporting.plots import Axis, Line, cdf_points, legend, plot

from . import scheduling
from .metrics import PolicyRun, Summary, long_fcts, short_fcts, summarise
from .tables import counts_table

DESCRIPTIONS = {
    "hash": "consistent hash of the connection's addresses and ports, regardless of load",
    "cheetah-rr": "round robin, regardless of load",
    "cheetah-ll": "fewest connections, by the switch's own count of SYN against FIN and RST",
    "cclb4": "lowest score from active and future flows in equal parts (a = 0.5), as reported in the servers' packets",
    "cclb4-current": "fewest active flows, as reported (a = 1)",
    "cclb4-future": "fewest flows that will still be active soon, as reported (a = 0)",
}


def render(settings: Settings, plan: Sequence[Arrival], runs: Sequence[PolicyRun], offered: float) -> str:
    """Return the page as HTML."""
    summaries = {r.name: summarise(plan, r, settings.seconds) for r in runs}
    style = resources.files("frontage_demo").joinpath("data/report.css").read_text()
    body = "\n".join(
        [
            "<h1>Frontage demo</h1>",
            _verdict(summaries),
            _introduction(settings),
            _table(runs, summaries),
            _fct_section(plan, runs),
            scheduling.section(settings, plan, runs),
            _variance_section(settings, runs),
            _active_section(settings, runs),
            _packets_section(settings, runs),
            _settings_section(settings, plan, runs, offered),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Frontage demo</title>'
        f"<style>\n{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _verdict(summaries: Mapping[str, Summary]) -> str:
    requests = sum(s.requests for s in summaries.values())
    failures = sum(s.failures for s in summaries.values())
    if failures:
        return f'<p class="verdict bad">{failures} of {requests} requests failed.</p>'
    return f'<p class="verdict good">All {requests} requests completed, and every byte was verified.</p>'


def _introduction(settings: Settings) -> str:
    protocol = settings.terms
    twice = ", with FIFO and with AIFO queueing" if len(settings.schedulers) > 1 else ""
    left_out = "".join(f" Policy {policy} is excluded: {reason}." for policy, reason in settings.left_out.items())
    return (
        f"<p>{settings.clients} client hosts fetched objects over {protocol.http} from one virtual IP address. A P4 edge switch assigned each connection to one of "
        f"{settings.servers} {protocol.servers}. Each policy in turn got the same requests at the same times{twice}; flow sizes follow the web-search "
        f"workload. The flow completion time (FCT) of a request runs from {protocol.fct_begins} to the last byte of the response.{left_out}</p>"
    )


Column = tuple[str, Callable[[Summary], float | None], float, str]
COLUMNS: tuple[Column, ...] = (
    ("mean FCT<br>up to 100 KB<br>(ms)", lambda s: s.short_mean, 1e3, ".2f"),
    ("p99 FCT<br>up to 100 KB<br>(ms)", lambda s: s.short_p99, 1e3, ".1f"),
    ("mean FCT<br>above 1 MB<br>(ms)", lambda s: s.long_mean, 1e3, ".0f"),
    ("variance<br>of active<br>flows", lambda s: s.variance, 1, ".2f"),
    ("retransmitted<br>segments", lambda s: s.retransmitted, 1, ".0f"),
)


def _table(runs: Sequence[PolicyRun], summaries: Mapping[str, Summary]) -> str:
    best = {
        title: min((v for s in summaries.values() if (v := value(s)) is not None), default=None) for title, value, _, _ in COLUMNS
    }
    head = "".join(f"<th>{title}</th>" for title, *_ in COLUMNS)
    rows = []
    for name, summary in summaries.items():
        failed = f'<td class="{"bad" if summary.failures else ""}">{summary.failures}</td>'
        cells = [f"<td>{name}</td><td>{summary.requests}</td>{failed}"]
        for title, value, factor, form in COLUMNS:
            number = value(summary)
            text = "-" if number is None else f"{number * factor:{form}}"
            cells.append(f'<td class="{"best" if number is not None and number == best[title] else ""}">{text}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    policies = "".join(f"<dt>{p}</dt><dd>{escape(DESCRIPTIONS[p])}</dd>" for p in {r.treatment.policy: 0 for r in runs})
    return (
        "<h2>Results</h2><p>Sizes are the workload's, before scaling. Green marks the best value of a column; lower is better in all of them.</p>"
        f'<div class="scroll"><table><thead><tr><th>policy</th><th>requests</th><th>failed</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div><dl>{policies}</dl>"
    )


def _line(run: PolicyRun, values: Sequence[float]) -> Line:
    """Return a distribution as a line: the colour shows the policy, dashes a scheduler other than FIFO."""
    treatment = run.treatment
    dashed = treatment.scheduler != "fifo"
    return Line(run.name, POLICIES.index(treatment.policy), cdf_points(values), step=True, dashed=dashed)


def _fct_section(plan: Sequence[Arrival], runs: Sequence[PolicyRun]) -> str:
    parts = ["<h2>Flow completion times</h2>"]
    for title, select, text in (
        ("Flows up to 100 KB", short_fcts, "Most flows are short, and users wait for these."),
        ("Flows above 1 MB", long_fcts, "Long flows carry most of the bytes; their rate is their share of the links."),
    ):
        values = [(r, [f * 1e3 for f in select(plan, r.outcomes)]) for r in runs]
        everything = [v for _, vs in values for v in vs]
        if not everything:
            continue
        lines = [_line(r, v) for r, v in values if v]
        x = Axis("FCT (ms)", min(everything) * 0.9, max(everything) * 1.1, logarithmic=True)
        parts.append(
            f"<h3>{title}</h3><p>A point (x, y) means that the share y of these flows took at most x. Further left is better; the top of the plot is the "
            f"tail. {text}</p>{plot(title, x, Axis('share of flows', 0, 1), lines)}{legend(lines)}"
        )
    return "".join(parts)


def _variance_section(settings: Settings, runs: Sequence[PolicyRun]) -> str:
    variances = [(r, r.active.variances(settings.seconds)) for r in runs]
    highest = max((max(v) for _, v in variances if v), default=0.0)
    lines = [_line(r, v) for r, v in variances if v]
    x = Axis("variance of active flows across servers (flows squared)", 0, max(highest, 1.0))
    return (
        "<h2>Evenness</h2><p>The demo sampled the number of active flows of each server every 50 ms and computed its variance across the servers. A point "
        "(x, y) means that the variance was at most x during the share y of the time. Further left means more even load.</p>"
        f"{plot('Variance across servers', x, Axis('share of time', 0, 1), lines)}{legend(lines)}"
    )


def _active_section(settings: Settings, runs: Sequence[PolicyRun]) -> str:
    highest = max((max(row) for r in runs for row in r.active.counts), default=1)
    x, y = Axis("time (s)", 0, settings.seconds), Axis("active flows", 0, max(highest, 1))
    cells, key = [], ""
    for run in runs:
        lines = [
            Line(
                server,
                i % 8,
                [(t, row[i]) for t, row in zip(run.active.times, run.active.counts, strict=True) if 0 <= t <= settings.seconds],
                True,
            )
            for i, server in enumerate(run.active.servers)
        ]
        key = legend(lines)
        cells.append(f"<div><h3>{run.name}</h3>{plot(f'Active flows under {run.name}', x, y, lines, 400, 220)}</div>")
    return (
        "<h2>Active flows of each server</h2><p>One line per server shows responses that have begun and are not sent completely. A good balancer keeps the "
        "lines close together. A line that climbs alone is a server that got more than its link carries. All plots have the same scale.</p>"
        f'{key}<div class="small">{"".join(cells)}</div>'
    )


def _packets_section(settings: Settings, runs: Sequence[PolicyRun]) -> str:
    steering = counts_table({r.name: r.steering for r in runs})
    drops = counts_table({r.name: r.drops for r in runs})
    return (
        "<h2>Packets</h2><h3>How the edge switch found a packet's server</h3><p>Packets to and from the virtual IP address, by the switch's counters. "
        f"{settings.terms.steering}</p>"
        f"{steering or '<p>The switch counted no packets.</p>'}<h3>Drops by reason</h3>{drops or '<p>The edge switch dropped no packets.</p>'}"
    )


def _settings_section(settings: Settings, plan: Sequence[Arrival], runs: Sequence[PolicyRun], offered: float) -> str:
    late = max((o.late for r in runs for o in r.outcomes), default=0.0)
    cpu = {part: max(r.cpu.get(part, 0.0) for r in runs) for r in runs for part in r.cpu}
    queue = f"{settings.bottleneck_packets} packets" if settings.bottleneck_packets else f"{settings.bottleneck_queue // 1000} kB"
    entries = {
        "seed": str(settings.seed),
        "time per run": f"{settings.seconds:g} s of arrivals, then until the last response is complete",
        "load": f"{settings.load:g} of the bottleneck's rate requested, {offered:.3f} offered by the drawn arrivals",
        "arrivals": f"Poisson, {len(plan)} requests ({len(plan) / settings.seconds:.1f} per second), a new connection each, open loop",
        "flow sizes": f"web-search workload (DCTCP, SIGCOMM 2010) times {settings.size_scale:g}, so that a short run holds enough flows",
        "bottleneck": f"edge switch to clients: {settings.bottleneck_rate / 1e6:g} Mbit/s, queue {queue}, "
        f"propagation {settings.delay * 1e3:g} ms each way",
        "server links": f"{settings.server_rate / 1e6:g} Mbit/s each, together {settings.server_headroom:g} times the bottleneck's rate",
        "transport": settings.terms.transport,
        "closing": settings.terms.closing,
        "switch": settings.target_name,
        "latest start": f"{late * 1e3:.1f} ms after its planned time",
        "processor": ", ".join(f"{part} {cores:.2f}" for part, cores in cpu.items()) + " (cores, maximum over the policies)",
    }
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in entries.items())
    return (
        f"<h2>Settings</h2><dl>{rows}</dl><p class='soft'>The latest start and the processor use show whether the machine kept up. If starts are late by more than a "
        "few milliseconds or all cores are busy, the times show the machine's limits and not the network's. In that case lower LOAD.</p>"
    )
