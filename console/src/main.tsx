// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { startLive, stopLive } from "./state/live";
import { parseRoute, route } from "./state/route";
import { resume, user } from "./state/session";
import "./style.css";
import { Layout } from "./ui/layout";
import { FlowView } from "./views/flow";
import { HandoffView } from "./views/handoff";
import { HistoryView } from "./views/history";
import { LoginView } from "./views/login";
import { OverviewView } from "./views/overview";
import { PacketView } from "./views/packet";
import { SitesView } from "./views/sites";
import { VipList, VipView } from "./views/vip";

function View() {
  const { view, argument } = route.value;
  switch (view) {
    case "vips":
      return argument === null ? <VipList /> : <VipView key={argument} name={argument} />;
    case "flow":
      return <FlowView />;
    case "packet":
      return <PacketView />;
    case "sites":
      return <SitesView />;
    case "handoff":
      return <HandoffView />;
    case "history":
      return <HistoryView />;
    default:
      return <OverviewView />;
  }
}

function App() {
  const name = user.value?.name ?? null;
  useEffect(() => {
    if (name === null) return;
    startLive();
    return stopLive;
  }, [name]);
  return name === null ? (
    <LoginView />
  ) : (
    <Layout>
      <View />
    </Layout>
  );
}

const place = document.getElementById("app");
if (place !== null) {
  void resume().then(() => {
    // The link with a token was no route.
    route.value = parseRoute(location.hash);
    render(<App />, place);
  });
}
