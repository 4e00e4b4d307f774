// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useState } from "preact/hooks";
import { change } from "../api/client";
import type { Operation, Policy, SampledServer, SampledVip } from "../api/schema";
import { bits, percent, short, whole } from "../state/format";
import { meters, overview } from "../state/live";
import { may } from "../state/session";
import { VipState, WINDOW } from "../state/vip";
import { Chart } from "../ui/chart";
import { Age, Badge, Bar, Empty, Head, Message, Panel, Scroll, Search, Stat, staleness, type Tone } from "../ui/parts";

const POLICIES: [Policy, string][] = [
  ["hash", "Maglev's table, regardless of load"],
  ["cheetah-rr", "weighted round robin"],
  ["cheetah-ll", "fewest connections, as this switch counts"],
  ["cclb4", "lowest score of active and future flows"],
  ["cclb4-current", "fewest active flows, as the servers report"],
  ["cclb4-future", "fewest flows that will last"],
];
const ROWS = 100;

export function VipList() {
  const state = overview.state.value;
  const [filter, setFilter] = useState("");
  const vips = (state.value?.vips ?? []).filter((vip) =>
    `${vip.name} ${vip.address} ${vip.policy}`.includes(filter.trim()),
  );
  return (
    <div class={`view ${staleness(state)}`}>
      <div class="title">
        <h1>VIPs</h1>
        <Search label="Filter VIPs" hint="name, address or policy" value={filter} onChange={setFilter} />
      </div>
      <div class="cards">
        {vips.map((vip) => (
          <VipCard key={vip.name} vip={vip} />
        ))}
      </div>
      {vips.length === 0 && <Empty>{state.value === null ? (state.error ?? "loading …") : "No VIP matches."}</Empty>}
    </div>
  );
}

function VipCard({ vip }: { vip: SampledVip }) {
  return (
    <a class="card" href={`#/vips/${encodeURIComponent(vip.name)}`}>
      <span class="card-name">{vip.name}</span>
      <span class="mono">
        {vip.address} {vip.protocol} {vip.port}
      </span>
      <span>
        {vip.policy} · {vip.active} servers{vip.draining > 0 ? `, ${vip.draining} draining` : ""}
      </span>
      <span class="card-rates">
        <b>{short(meters.rate(`flows:${vip.name}`))}/s</b> new · <b>{bits(meters.rate(`down:${vip.name}`))}</b>
      </span>
      {vip.failed > 0 && <Badge tone="bad">{vip.failed} failed</Badge>}
    </a>
  );
}

interface Note {
  tone: Tone;
  text: string;
}

export function VipView({ name }: { name: string }) {
  const live = useMemo(() => new VipState(name), [name]);
  useEffect(() => {
    live.poller.start();
    return () => live.poller.stop();
  }, [live]);
  const [note, setNote] = useState<Note | null>(null);
  const [marks, setMarks] = useState<{ at: number; text: string }[]>([]);
  const state = live.poller.state.value;
  const vip = overview.state.value.value?.vips.find((one) => one.name === name);
  const sample = state.value;

  const act = async (text: string, run: () => Promise<Operation>) => {
    setNote({ tone: "info", text: `${text} …` });
    const began = performance.now();
    try {
      const done = await run();
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      setMarks((before) => [...before, { at: Date.now() / 1000, text }].slice(-6));
      const missing = done.missing.length > 0 ? `; not yet on ${done.missing.join(", ")}` : "";
      setNote({ tone: "good", text: `${done.changed ?? text}: installed in ${seconds} s${missing}` });
      void live.poller.read();
      void overview.read();
    } catch (error) {
      setNote({ tone: "bad", text: error instanceof Error ? error.message : String(error) });
    }
  };

  if (sample === null) {
    return (
      <div class="view">
        <h1>{name}</h1>
        <Empty>{state.error ?? "Reading the servers …"}</Empty>
      </div>
    );
  }
  const servers = sample.servers;
  const shares = live.newShares(servers);
  const marked = marks.map((mark) => ({ at: mark.at, text: mark.text }));
  return (
    <div class={`view ${staleness(state)}`}>
      <div class="title">
        <h1>
          <a href="#/vips">VIPs</a> / {name}
        </h1>
        {vip !== undefined && (
          <span class="mono">
            {vip.address} {vip.protocol} {vip.port}
          </span>
        )}
        <Age of={state} />
      </div>
      {note !== null && <Message tone={note.tone}>{note.text}</Message>}
      <Totals live={live} servers={servers} vip={vip} hasReports={sample.has_reports} />
      {vip !== undefined && <PolicyForm vip={vip} act={act} />}
      <div class="columns">
        <Panel title="Active flows by server">
          {sample.has_reports ? (
            <Chart title="N_AF" series={live.loads} stamp={sample.time} format={(v) => short(v)} marks={marked} />
          ) : (
            <Empty>This target does not show the reports of servers; softswitch does.</Empty>
          )}
        </Panel>
        <Panel title={`Share of new connections, over ${WINDOW} s`}>
          <Chart
            title="percent"
            series={live.shares}
            stamp={sample.time}
            format={(v) => `${short(v)} %`}
            marks={marked}
          />
        </Panel>
      </div>
      <ServerTable live={live} servers={servers} shares={shares} act={act} vip={vip} />
    </div>
  );
}

function Totals(props: { live: VipState; servers: SampledServer[]; vip: SampledVip | undefined; hasReports: boolean }) {
  const { live, servers, vip, hasReports } = props;
  const spread = live.spread.columns[0]?.at(-1) ?? null;
  const flows = servers.reduce((sum, server) => sum + (live.meters.rate(`flows:${server.name}`, WINDOW) ?? 0), 0);
  const down = servers.reduce((sum, server) => sum + (live.meters.rate(`down:${server.name}`) ?? 0), 0);
  return (
    <dl class="stats">
      <Stat
        name="Policy"
        value={vip?.policy ?? "–"}
        note={vip?.policy.startsWith("cclb4") ? `α ${vip.alpha}` : "regardless of reports"}
      />
      <Stat
        name="Servers"
        value={whole(servers.filter((server) => server.state === "active").length)}
        note={`${servers.filter((server) => server.state !== "active").length} draining`}
      />
      <Stat
        name="Active flows"
        value={hasReports ? whole(servers.reduce((sum, server) => sum + (server.n_af ?? 0), 0)) : "–"}
        note={
          hasReports
            ? `${whole(servers.reduce((sum, server) => sum + (server.n_ff ?? 0), 0))} will last`
            : "not on this target"
        }
      />
      <Stat name="Spread" value={spread === null ? "–" : short(spread)} note="variance of N_AF" />
      <Stat name="New connections" value={`${short(flows)}/s`} note={`over ${WINDOW} s`} />
      <Stat name="To clients" value={bits(down)} note="all servers" />
    </dl>
  );
}

function PolicyForm({
  vip,
  act,
}: {
  vip: SampledVip;
  act: (text: string, run: () => Promise<Operation>) => Promise<void>;
}) {
  const [policy, setPolicy] = useState<Policy>(vip.policy as Policy);
  const [alpha, setAlpha] = useState(vip.alpha);
  const [touched, setTouched] = useState(false);
  useEffect(() => {
    if (touched) return;
    setPolicy(vip.policy as Policy);
    setAlpha(vip.alpha);
  }, [vip.policy, vip.alpha, touched]);
  if (!may("operator")) return null;
  const needsAlpha = policy === "cclb4";
  const submit = async (event: Event) => {
    event.preventDefault();
    const text = needsAlpha ? `${policy}, α ${alpha}` : policy;
    const body = needsAlpha ? { policy, alpha } : { policy };
    await act(text, () => change<Operation>("PATCH", `vips/${encodeURIComponent(vip.name)}`, body));
    setTouched(false);
  };
  return (
    <form class="policy" onSubmit={submit} aria-label="Change the policy">
      <label>
        Policy
        <select
          value={policy}
          onChange={(event) => {
            setPolicy(event.currentTarget.value as Policy);
            setTouched(true);
          }}
        >
          {POLICIES.map(([name, what]) => (
            <option key={name} value={name}>
              {name}: {what}
            </option>
          ))}
        </select>
      </label>
      <label class={needsAlpha ? "" : "off"}>
        <span>
          α <small>weight of active flows</small>
        </span>
        <span class="slider">
          <input
            type="range"
            min="0"
            max="1"
            step="0.05"
            value={alpha}
            disabled={!needsAlpha}
            onInput={(event) => {
              setAlpha(Number(event.currentTarget.value));
              setTouched(true);
            }}
          />
          <output>{alpha.toFixed(2)}</output>
        </span>
      </label>
      <button type="submit" class="primary" disabled={policy === vip.policy && (!needsAlpha || alpha === vip.alpha)}>
        Apply to new connections
      </button>
    </form>
  );
}

type Column = "name" | "n_af" | "share" | "rate";

function ServerTable(props: {
  live: VipState;
  servers: SampledServer[];
  shares: (number | null)[];
  vip: SampledVip | undefined;
  act: (text: string, run: () => Promise<Operation>) => Promise<void>;
}) {
  const { live, servers, shares, act } = props;
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState<Column>("name");
  const [limit, setLimit] = useState(ROWS);
  const weights = servers.reduce((sum, server) => sum + (server.state === "active" ? server.weight : 0), 0) || 1;
  const most = Math.max(...servers.map((server) => server.n_af ?? 0), 4);
  const rows = servers.map((server, i) => ({
    server,
    share: shares[i] ?? null,
    rate: live.meters.rate(`down:${server.name}`),
    fair: server.state === "active" ? server.weight / weights : 0,
  }));
  const mostShare = Math.max(...rows.map((row) => row.share ?? 0), ...rows.map((row) => row.fair * 1.6), 0.01);
  const words = filter.trim().toLowerCase();
  const shown = rows.filter((row) =>
    `${row.server.name} ${row.server.address} ${row.server.state} ${row.server.zone ?? ""}`.includes(words),
  );
  if (order === "n_af") shown.sort((a, b) => (b.server.n_af ?? -1) - (a.server.n_af ?? -1));
  if (order === "share") shown.sort((a, b) => (b.share ?? -1) - (a.share ?? -1));
  if (order === "rate") shown.sort((a, b) => (b.rate ?? -1) - (a.rate ?? -1));
  const operator = may("operator");
  const hasZones = servers.some((server) => server.zone !== null);
  const controls = (
    <>
      <Search label="Filter servers" hint="filter" value={filter} onChange={setFilter} />
      <label class="inline">
        sort by
        <select value={order} onChange={(event) => setOrder(event.currentTarget.value as Column)}>
          <option value="name">configuration</option>
          <option value="n_af">N_AF</option>
          <option value="share">new connections</option>
          <option value="rate">traffic</option>
        </select>
      </label>
    </>
  );
  return (
    <Panel title={`Servers (${servers.length})`} aside={controls}>
      <Scroll label="Servers">
        <table class="servers">
          <thead>
            <tr>
              <th scope="col">server</th>
              <th scope="col">state</th>
              {hasZones && <th scope="col">zone</th>}
              <Head title="Active flows, as its cookies report them">N_AF</Head>
              <th scope="col">load</th>
              <Head title="Flows that will last">N_FF</Head>
              <Head title="In the switch, in flows: the lowest one gets the next connection">score</Head>
              <Head>new</Head>
              <th scope="col" title="The line is the fair share by weight">
                share of new
              </th>
              <Head>to clients</Head>
              <Head>weight</Head>
              {operator && (
                <th scope="col">
                  <span class="visually-hidden">actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, limit).map(({ server, share, rate, fair }) => (
              <tr key={server.name} data-server={server.name}>
                <th scope="row">
                  {server.name}{" "}
                  <small class="mono block">
                    {server.address}:{server.port} · SID {server.sid}
                  </small>
                </th>
                <td>{serverState(server)}</td>
                {hasZones && <td>{server.zone ?? "–"}</td>}
                <td class="n">{whole(server.n_af)}</td>
                <td class="w">
                  <Bar share={(server.n_af ?? 0) / most} />
                </td>
                <td class="n">{whole(server.n_ff)}</td>
                <td class="n">{server.score === null ? "–" : short(server.score)}</td>
                <td class="n">{percent(share)}</td>
                <td class="w">
                  <Bar share={(share ?? 0) / mostShare} mark={fair / mostShare} tone="alt" />
                </td>
                <td class="n">{bits(rate)}</td>
                <td class="n">
                  {server.weight}
                  {server.share < 100 && <small> at {server.share} %</small>}
                </td>
                {operator && (
                  <td>
                    <DrainButton server={server} act={act} />
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {shown.length > limit && (
        <button type="button" class="more" onClick={() => setLimit(limit + ROWS)}>
          Show {Math.min(ROWS, shown.length - limit)} more of {shown.length}
        </button>
      )}
      {shown.length === 0 && <Empty>No server matches.</Empty>}
    </Panel>
  );
}

function serverState(server: SampledServer) {
  const health: Record<string, [Tone, string]> = {
    failed: ["bad", "failed"],
    healthy: ["good", "healthy"],
    unknown: ["idle", "not checked yet"],
  };
  const [tone, text] = health[server.health ?? ""] ?? ["good", "active"];
  return (
    <>
      {server.state === "draining" ? <Badge tone="warn">draining</Badge> : <Badge tone={tone}>{text}</Badge>}
      {server.state === "draining" && server.health === "failed" && <Badge tone="bad">failed</Badge>}
    </>
  );
}

function DrainButton(props: {
  server: SampledServer;
  act: (text: string, run: () => Promise<Operation>) => Promise<void>;
}) {
  const { server, act } = props;
  const drains = server.state === "active";
  const verb = drains ? "drain" : "activate";
  const body = { state: drains ? "draining" : "active" };
  return (
    <button
      type="button"
      class="small"
      onClick={() =>
        void act(`${verb} ${server.name}`, () =>
          change<Operation>("PATCH", `servers/${encodeURIComponent(server.name)}`, body),
        )
      }
      aria-label={`${drains ? "Drain" : "Activate"} ${server.name}`}
    >
      {drains ? "Drain" : "Activate"}
    </button>
  );
}
