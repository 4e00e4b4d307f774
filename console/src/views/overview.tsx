// SPDX-License-Identifier: Apache-2.0
import type { Overview, SampledSwitch, SampledVip } from "../api/schema";
import { clock } from "../state/clock";
import { age, bits, percent, short, whole } from "../state/format";
import { arrivals, happenings, meters, overview, throughput } from "../state/live";
import { Chart } from "../ui/chart";
import { Badge, Bar, Empty, Head, Panel, Scroll, Sparkline, Stat, staleness, Term, type Tone } from "../ui/parts";
import { describeEvent } from "./events";
import { DROPS, OUTCOMES } from "./meanings";

const sum = (values: (number | null)[]) => values.reduce<number>((total, value) => total + (value ?? 0), 0);

export function OverviewView() {
  const state = overview.state.value;
  const sample = state.value;
  if (sample === null) {
    return <Empty>{state.error ?? "Reading the switches …"}</Empty>;
  }
  return (
    <div class={`view ${staleness(state)}`}>
      <h1 class="visually-hidden">Overview</h1>
      {sample.config_error !== null && (
        <p class="message bad" role="alert">
          The configuration file is invalid, and the controller keeps the previous one: {sample.config_error}
        </p>
      )}
      <Summary sample={sample} />
      <div class="columns">
        <Panel title="Traffic to clients by VIP">
          <Chart title="bit/s" series={throughput} stamp={sample.time} format={(v) => `${short(v)}bit/s`} />
        </Panel>
        <Panel title="New connections by VIP">
          <Chart title="per second" series={arrivals} stamp={sample.time} format={(v) => `${short(v)}/s`} />
        </Panel>
      </div>
      <VipTable vips={sample.vips} hasReports={sample.has_reports} />
      <div class="columns">
        <div class="stack">
          <SwitchTable switches={sample.switches} />
          <Drops sample={sample} />
        </div>
        <div class="stack">
          <Outcomes sample={sample} />
          <Events />
        </div>
      </div>
    </div>
  );
}

function Summary({ sample }: { sample: Overview }) {
  const healthy = sample.switches.filter((one) => one.phase === "installed" && one.error === null).length;
  const servers = sum(sample.vips.map((vip) => vip.active + vip.draining));
  const active = sum(sample.vips.map((vip) => vip.active));
  const failed = sum(sample.vips.map((vip) => vip.failed));
  const drops = sum(Object.keys(sample.drops).map((reason) => meters.rate(`drop:${reason}`, 5)));
  const key = sample.keys.find((one) => one.seals);
  const keyAge = key?.since ? (clock.value - Date.parse(key.since)) / 1000 : null;
  const total = sample.switches.length;
  return (
    <dl class="stats">
      <Stat
        name="Switches"
        value={`${healthy} of ${total}`}
        note={healthy === total ? "installed" : "not all are installed"}
        tone={healthy === total ? "good" : "bad"}
      />
      <Stat name="VIPs" value={whole(sample.vips.length)} note={`${whole(servers)} servers`} />
      <Stat
        name="Servers in use"
        value={whole(active)}
        note={failed > 0 ? `${failed} failed` : `${servers - active} draining`}
        tone={failed > 0 ? "bad" : servers > active ? "warn" : "good"}
      />
      <Stat
        name="Active flows"
        value={sample.has_reports ? whole(sum(sample.vips.map((vip) => vip.n_af))) : "–"}
        note={sample.has_reports ? `${whole(sum(sample.vips.map((vip) => vip.n_ff)))} will last` : "not on this target"}
      />
      <Stat
        name="New connections"
        value={`${short(sum(sample.vips.map((vip) => meters.rate(`flows:${vip.name}`))))}/s`}
        note={`${whole(sum(sample.vips.map((vip) => vip.new_flows)))} in all`}
      />
      <Stat
        name="To clients"
        value={bits(sum(sample.vips.map((vip) => meters.rate(`down:${vip.name}`))))}
        note={`${short(sum(sample.vips.map((vip) => vip.down.bytes)))}B in all`}
      />
      <Stat
        name="Drops"
        value={`${short(drops)}/s`}
        note={`${whole(sum(Object.values(sample.drops).map((count) => count.packets)))} in all`}
        tone={drops > 0 ? "warn" : "good"}
      />
      <Stat
        name="Key"
        value={keyAge === null ? "–" : age(keyAge)}
        note={key === undefined ? "" : `key ${key.id}, of ${sample.keys.length} installed`}
      />
    </dl>
  );
}

function VipTable({ vips, hasReports }: { vips: SampledVip[]; hasReports: boolean }) {
  const most = Math.max(...vips.map((vip) => meters.rate(`down:${vip.name}`) ?? 0), 1);
  return (
    <Panel title="VIPs" aside={<a href="#/vips">all details</a>}>
      <Scroll label="VIPs">
        <table>
          <thead>
            <tr>
              <th scope="col">VIP</th>
              <th scope="col">address</th>
              <th scope="col">policy</th>
              <Head>servers</Head>
              <th scope="col">health</th>
              <Head title="Active flows, as the servers report them">N_AF</Head>
              <Head>new/s</Head>
              <Head>to clients</Head>
              <th scope="col">share</th>
              <th scope="col">last minutes</th>
            </tr>
          </thead>
          <tbody>
            {vips.map((vip) => {
              const rate = meters.rate(`down:${vip.name}`);
              const at = throughput.names.indexOf(vip.name);
              return (
                <tr key={vip.name}>
                  <th scope="row">
                    <a href={`#/vips/${encodeURIComponent(vip.name)}`}>{vip.name}</a>
                  </th>
                  <td class="mono">
                    {vip.address}{" "}
                    <small>
                      {vip.protocol} {vip.port}
                    </small>
                  </td>
                  <td>
                    {vip.policy}
                    {vip.policy === "cclb4" && <small> α {vip.alpha}</small>}
                  </td>
                  <td class="n">
                    {vip.active}
                    {vip.draining > 0 && <small> +{vip.draining}</small>}
                  </td>
                  <td>{health(vip)}</td>
                  <td class="n">{hasReports ? whole(vip.n_af) : "–"}</td>
                  <td class="n">{short(meters.rate(`flows:${vip.name}`))}</td>
                  <td class="n">{bits(rate)}</td>
                  <td class="w">
                    <Bar share={(rate ?? 0) / most} />
                  </td>
                  <td class="w">
                    {at >= 0 && (
                      <Sparkline values={(throughput.columns[at] ?? []).slice(-90)} label={`Traffic of ${vip.name}`} />
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  );
}

function health(vip: SampledVip) {
  if (vip.active === 0) return <Badge tone="bad">no server</Badge>;
  if (vip.failed > 0) return <Badge tone="bad">{vip.failed} failed</Badge>;
  if (vip.draining > 0) return <Badge tone="warn">{vip.draining} draining</Badge>;
  return <Badge tone="good">all in use</Badge>;
}

const PHASES: Record<string, Tone> = {
  installed: "good",
  standby: "idle",
  installing: "info",
  connecting: "warn",
  failed: "bad",
};

function SwitchTable({ switches }: { switches: SampledSwitch[] }) {
  return (
    <Panel title="Switches">
      <Scroll label="Switches">
        <table>
          <thead>
            <tr>
              <th scope="col">switch</th>
              <th scope="col">state</th>
              <th scope="col">zone</th>
              <Head>entries</Head>
              <Head>to VIPs</Head>
              <Head>drops</Head>
            </tr>
          </thead>
          <tbody>
            {switches.map((one) => (
              <tr key={one.name}>
                <th scope="row">
                  {one.name} <small class="mono">{one.address}</small>
                </th>
                <td>
                  <Badge tone={PHASES[one.phase] ?? "idle"}>{one.phase}</Badge> <small>{one.role}</small>
                  {one.state === "draining" && <Badge tone="warn">draining</Badge>}
                  {one.error !== null && <div class="error">{one.error}</div>}
                </td>
                <td>
                  {one.zone ?? "–"}
                  {one.spilling.length > 0 && <div class="note">spills {one.spilling.join(", ")}</div>}
                </td>
                <td class="n">{whole(one.entries)}</td>
                <td class="n">{short(meters.rate(`switch:${one.name}`))}/s</td>
                <td class="n">{short(meters.rate(`dropped:${one.name}`, 5))}/s</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  );
}

function Outcomes({ sample }: { sample: Overview }) {
  const rows = Object.keys(sample.outcomes)
    .map((name) => ({
      name,
      rate: meters.rate(`outcome:${name}`, 5) ?? 0,
      packets: sample.outcomes[name]?.packets ?? 0,
    }))
    .sort((a, b) => b.packets - a.packets);
  const total = sum(rows.map((row) => row.packets)) || 1;
  return (
    <Panel title="How packets found their server">
      {rows.length === 0 ? (
        <Empty>No packets of VIPs yet.</Empty>
      ) : (
        <Scroll label="How packets found their server">
          <table>
            <tbody>
              {rows.slice(0, 9).map((row) => (
                <tr key={row.name}>
                  <Term name={row.name} meaning={OUTCOMES[row.name]} />
                  <td class="n">{short(row.rate)}/s</td>
                  <td class="n">{percent(row.packets / total)}</td>
                  <td class="w">
                    <Bar share={row.packets / total} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  );
}

function Drops({ sample }: { sample: Overview }) {
  const rows = Object.entries(sample.drops).sort((a, b) => b[1].packets - a[1].packets);
  return (
    <Panel title="Drops by reason">
      {rows.length === 0 ? (
        <Empty>The switches have not dropped a packet.</Empty>
      ) : (
        <Scroll label="Drops by reason">
          <table>
            <tbody>
              {rows.map(([name, count]) => (
                <tr key={name}>
                  <Term name={name} meaning={DROPS[name]} />
                  <td class="n">{short(meters.rate(`drop:${name}`, 5))}/s</td>
                  <td class="n">{whole(count.packets)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  );
}

function Events() {
  return (
    <Panel title="Events">
      {happenings.value.length === 0 ? (
        <Empty>Nothing has changed since you opened this page.</Empty>
      ) : (
        <ol class="events">
          {happenings.value.slice(0, 12).map((one) => (
            <li key={`${one.at}${JSON.stringify(one.data)}`}>
              <time>{age((clock.value - one.at) / 1000)}</time>
              <span>{describeEvent(one)}</span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}
