// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo } from "preact/hooks";
import type { SampledServer, SampledServers, Sender, Streams } from "../api/schema";
import { DelegationMeters, isCurrent, type PortGroup, reasons } from "../state/delegation";
import { age, bits, percent, short, whole } from "../state/format";
import { overview } from "../state/live";
import { Poller } from "../state/poll";
import { Age, Bar, Empty, Head, Panel, Scroll } from "../ui/parts";

export function HandoffView() {
  const vips = overview.state.value.value?.vips ?? [];
  const udp = vips.filter((vip) => vip.protocol === "udp");
  return (
    <div class="view">
      <div class="title">
        <h1>Hand-off</h1>
      </div>
      {udp.length === 0 ? (
        <Empty>Load balancers hand QUIC streams to real servers. This configuration has no VIP for QUIC.</Empty>
      ) : (
        udp.map((vip) => <Handoff key={vip.name} name={vip.name} />)
      )}
    </div>
  );
}

function Handoff({ name }: { name: string }) {
  const meters = useMemo(() => new DelegationMeters(), []);
  const poller = useMemo(
    () => new Poller<SampledServers>(`samples/vips/${encodeURIComponent(name)}`, 1_000, (sample) => meters.add(sample)),
    [name, meters],
  );
  useEffect(() => {
    poller.start();
    return () => poller.stop();
  }, [poller]);
  const state = poller.state.value;
  const balancers = (state.value?.servers ?? []).filter((server) => server.real_servers.length > 0);
  if (state.value !== null && balancers.length === 0) {
    return (
      <Panel title={name}>
        <Empty>No real servers send for the servers of this VIP.</Empty>
      </Panel>
    );
  }
  return (
    <Panel title={name} aside={<Age of={state} />}>
      {balancers.map((server) => (
        <Balancer key={server.name} server={server} meters={meters} />
      ))}
    </Panel>
  );
}

function Balancer({ server, meters }: { server: SampledServer; meters: DelegationMeters }) {
  const groups = meters.groups(server);
  const total = groups.reduce((sum, group) => sum + (group.bytesPerSecond ?? 0), 0);
  const streams = server.agent !== null;
  return (
    <>
      <h3>
        {server.name}{" "}
        <small>
          sends {bits(meters.ownBytesPerSecond(server, total))} itself; its real servers send {bits(total)} in its name
        </small>
      </h3>
      <Scroll label={`Real servers of ${server.name}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">real server</th>
              {streams && <StreamHead />}
              <Head>bit/s</Head>
              <Head>packets/s</Head>
              <Head>share</Head>
              <th scope="col">of what was handed off</th>
              <Head>packets</Head>
            </tr>
          </thead>
          {groups.map((group) => (
            <tbody key={group.port}>
              {group.senders.map((sender, i) => (
                <tr key={sender.name} data-real-server={sender.name}>
                  <th scope="row">{sender.name}</th>
                  {streams && <StreamCells server={server} sender={sender} meters={meters} />}
                  {i === 0 && <PacketCells group={group} total={total} />}
                </tr>
              ))}
            </tbody>
          ))}
        </table>
      </Scroll>
      <AgentNote server={server} />
    </>
  );
}

function StreamHead() {
  return (
    <>
      <Head>streams/s</Head>
      <Head>in progress</Head>
      <Head>completed</Head>
      <Head>aborted</Head>
      <Head>rejected</Head>
      <Head>resumed</Head>
    </>
  );
}

function StreamCells(props: { server: SampledServer; sender: Sender; meters: DelegationMeters }) {
  const { server, sender, meters } = props;
  const streams: Streams | null = sender.streams;
  const rejected = streams === null ? null : Object.values(streams.rejected).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <td class="n">{short(meters.streamsPerSecond(server, sender))}</td>
      <td class="n">{whole(isCurrent(server) ? streams?.in_progress : null)}</td>
      <td class="n">{whole(streams?.completed)}</td>
      <td class="n">{whole(streams?.aborted)}</td>
      <td class="n">
        {whole(rejected)}
        {streams !== null && <small class="block">{reasons(streams.rejected)}</small>}
      </td>
      <td class="n">{whole(streams?.resumed)}</td>
    </>
  );
}

/** What the switches count; real servers on one port share these cells. */
function PacketCells({ group, total }: { group: PortGroup; total: number }) {
  const count = group.senders.length;
  const rows = count > 1 ? count : undefined;
  const share = total === 0 ? null : (group.bytesPerSecond ?? 0) / total;
  return (
    <>
      <td class="n" rowSpan={rows}>
        {bits(group.bytesPerSecond)}
      </td>
      <td class="n" rowSpan={rows}>
        {short(group.packetsPerSecond)}
      </td>
      <td class="n" rowSpan={rows}>
        {percent(share)}
      </td>
      <td class="w" rowSpan={rows}>
        <Bar share={share ?? 0} />
      </td>
      <td class="n" rowSpan={rows}>
        {whole(group.packets)}
        {rows !== undefined && <small class="block">of port {group.port}</small>}
      </td>
    </>
  );
}

/** Says why streams are missing or old, and what to do. */
function AgentNote({ server }: { server: SampledServer }) {
  const { agent, name } = server;
  if (agent === null) {
    return (
      <p class="note">
        To see streams, give the server {name} the URL of its agent's metrics in the configuration:{" "}
        <code>metrics: "http://ADDRESS:9153/metrics"</code>
      </p>
    );
  }
  if (agent.time === null && agent.error === null) return <p class="note">Reading the streams of {name} …</p>;
  return (
    <>
      {agent.error !== null && (
        <p class="note warn">
          {agent.age === null
            ? `The agent of ${name} has not sent its metrics yet: `
            : `The agent of ${name} does not send its metrics; streams are ${age(agent.age)} old: `}
          {agent.error}
        </p>
      )}
      {agent.unmatched.length > 0 && (
        <p class="note warn">
          The agent of {name} also delegates to {agent.unmatched.join(", ")}, which is not in <code>real_servers</code>:
          give both the same name or address.
        </p>
      )}
    </>
  );
}
