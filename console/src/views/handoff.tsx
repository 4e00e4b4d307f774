// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo } from "preact/hooks";
import type { SampledServers } from "../api/schema";
import { bits, percent, short, whole } from "../state/format";
import { overview } from "../state/live";
import { Poller } from "../state/poll";
import { Meters } from "../state/rates";
import { Age, Bar, Empty, Panel, Scroll } from "../ui/parts";

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
  const meters = useMemo(() => new Meters(), []);
  const poller = useMemo(
    () =>
      new Poller<SampledServers>(`samples/vips/${encodeURIComponent(name)}`, 1_000, (sample) => {
        for (const server of sample.servers) {
          meters.add(`down:${server.name}`, sample.time, server.down.bytes);
          for (const sender of server.real_servers) {
            meters.add(`${server.name}:${sender.name}`, sample.time, sender.bytes);
            meters.add(`${server.name}:${sender.name}:packets`, sample.time, sender.packets);
          }
        }
      }),
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
      {balancers.map((server) => {
        const own = meters.rate(`down:${server.name}`, 5);
        const rates = server.real_servers.map((sender) => meters.rate(`${server.name}:${sender.name}`, 5) ?? 0);
        const total = rates.reduce((a, b) => a + b, 0);
        return (
          <Scroll key={server.name} label={`Real servers of ${server.name}`}>
            <table>
              <caption>
                {server.name}{" "}
                <small>
                  sends {bits(own)} itself; its real servers send {bits(total)} in its name
                </small>
              </caption>
              <thead>
                <tr>
                  <th scope="col">real server</th>
                  <th scope="col" class="n">
                    bit/s
                  </th>
                  <th scope="col" class="n">
                    packets/s
                  </th>
                  <th scope="col" class="n">
                    share
                  </th>
                  <th scope="col">of what was handed off</th>
                  <th scope="col" class="n">
                    in all
                  </th>
                </tr>
              </thead>
              <tbody>
                {server.real_servers.map((sender, i) => (
                  <tr key={sender.name}>
                    <th scope="row">{sender.name}</th>
                    <td class="n">{bits(rates[i] ?? null)}</td>
                    <td class="n">{short(meters.rate(`${server.name}:${sender.name}:packets`, 5))}</td>
                    <td class="n">{percent(total === 0 ? null : (rates[i] ?? 0) / total)}</td>
                    <td class="w">
                      <Bar share={total === 0 ? 0 : (rates[i] ?? 0) / total} />
                    </td>
                    <td class="n">{whole(sender.packets)} packets</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        );
      })}
    </Panel>
  );
}
