// SPDX-License-Identifier: Apache-2.0
// The dumbbell of ../dumbbell.py in ns-3, with the same links, queues and TCP, and the flows of our simulator's
// flows.csv. It prints the flows' mean completion time, the packets that arrived at routers, and the core time of the
// events.

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <vector>

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

using namespace ns3;

namespace {

constexpr uint16_t PORT = 8080;

// A connection's client. Its request starts with the number of bytes that it wants. It counts the received bytes.
class Download {
  public:
    Download(Ptr<Node> client, Ipv4Address server, uint64_t size, uint32_t request)
        : client(client), server(server), size(size), request(request) {}

    void Begin() {
        start = Simulator::Now();
        socket = Socket::CreateSocket(client, TcpSocketFactory::GetTypeId());
        socket->SetConnectCallback(MakeCallback(&Download::Request, this), MakeNullCallback<void, Ptr<Socket>>());
        socket->SetRecvCallback(MakeCallback(&Download::Receive, this));
        socket->Connect(InetSocketAddress(server, PORT));
    }

    bool Complete() const { return received == size; }
    double Seconds() const { return (end - start).GetSeconds(); }
    uint64_t Received() const { return received; }

  private:
    void Request(Ptr<Socket>) {
        std::vector<uint8_t> bytes(request);
        std::copy_n(reinterpret_cast<const uint8_t*>(&size), sizeof size, bytes.begin());
        socket->Send(Create<Packet>(bytes.data(), request));
    }

    void Receive(Ptr<Socket>) {
        while (Ptr<Packet> packet = socket->Recv()) {
            received += packet->GetSize();
        }
        if (Complete()) {
            end = Simulator::Now();
            socket->Close();
        }
    }

    Ptr<Node> client;
    Ipv4Address server;
    uint64_t size;
    uint32_t request;
    Ptr<Socket> socket;
    uint64_t received = 0;
    Time start, end;
};

// A connection's server. It sends the requested bytes as the socket accepts them, and closes when the client closes.
class Response {
  public:
    static void Accept(Ptr<Socket> socket, const Address&) {
        auto response = std::make_shared<Response>();
        socket->SetRecvCallback([response](Ptr<Socket> socket) { response->Receive(socket); });
        socket->SetSendCallback([response](Ptr<Socket> socket, uint32_t) { response->Fill(socket); });
        socket->SetCloseCallbacks([](Ptr<Socket> socket) { socket->Close(); }, MakeNullCallback<void, Ptr<Socket>>());
    }

  private:
    void Receive(Ptr<Socket> socket) {
        if (Ptr<Packet> packet = socket->Recv()) {
            packet->CopyData(reinterpret_cast<uint8_t*>(&left), sizeof left);
            Fill(socket);
        }
    }

    void Fill(Ptr<Socket> socket) {
        while (uint32_t bytes = std::min<uint64_t>(left, socket->GetTxAvailable())) {
            socket->Send(Create<Packet>(bytes));
            left -= bytes;
        }
    }

    uint64_t left = 0;
};

// A router, its hosts, and the hosts' devices, which send packets to the router.
struct Side {
    Ptr<Node> router;
    NodeContainer hosts;
    NetDeviceContainer sending;
};

Side Build(uint32_t count, PointToPointHelper& link, Ipv4AddressHelper& addresses, InternetStackHelper& stack) {
    Side side{CreateObject<Node>(), {}, {}};
    side.hosts.Create(count);
    stack.Install(side.router);
    stack.Install(side.hosts);
    Ipv4StaticRoutingHelper routing;
    for (uint32_t n = 0; n < count; n++) {
        NetDeviceContainer ends = link.Install(side.hosts.Get(n), side.router);
        side.sending.Add(ends.Get(0));
        Ipv4InterfaceContainer interfaces = addresses.Assign(ends);
        addresses.NewNetwork();
        Ptr<Ipv4> host = side.hosts.Get(n)->GetObject<Ipv4>();
        routing.GetStaticRouting(host)->SetDefaultRoute(interfaces.GetAddress(1), 1);
    }
    return side;
}

std::vector<std::unique_ptr<Download>> Plan(const std::string& path, const Side& near, const Side& far,
                                            uint32_t request) {
    std::vector<std::unique_ptr<Download>> downloads;
    std::ifstream file(path);
    NS_ABORT_MSG_UNLESS(file, path << ": cannot read it");
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        // id,label,client,server,size,start,...: hosts are c1, c2, ... and s1, s2, ...
        std::vector<std::string> fields;
        std::istringstream text(line);
        for (std::string field; std::getline(text, field, ',');) {
            fields.push_back(field);
        }
        Ptr<Node> client = near.hosts.Get(std::stoul(fields.at(2).substr(1)) - 1);
        Ptr<Ipv4> server = far.hosts.Get(std::stoul(fields.at(3).substr(1)) - 1)->GetObject<Ipv4>();
        Ipv4Address address = server->GetAddress(1, 0).GetLocal();
        downloads.push_back(std::make_unique<Download>(client, address, std::stoull(fields.at(4)), request));
        Simulator::Schedule(NanoSeconds(std::stoull(fields.at(5))), &Download::Begin, downloads.back().get());
    }
    return downloads;
}

uint64_t Sent(const NetDeviceContainer& devices) {
    uint64_t packets = 0;
    for (auto device = devices.Begin(); device != devices.End(); ++device) {
        packets += DynamicCast<PointToPointNetDevice>(*device)->GetQueue()->GetTotalReceivedPackets();
    }
    return packets;
}

double CoreSeconds() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

} // namespace

int main(int argc, char* argv[]) {
    std::string flows, access, trunk, delay;
    uint32_t pairs = 0, queue = 0, request = 0;
    CommandLine options(__FILE__);
    options.AddValue("flows", "flows.csv of our simulator", flows);
    options.AddValue("pairs", "clients, and as many servers", pairs);
    options.AddValue("access", "rate of a host's link", access);
    options.AddValue("trunk", "rate of the link between the routers", trunk);
    options.AddValue("delay", "propagation delay of each link", delay);
    options.AddValue("queue", "packets in the queue at each end of a link", queue);
    options.AddValue("request", "bytes of a request", request);
    options.Parse(argc, argv); // options named like ns-3 attributes configure TCP

    // Neither queue disciplines above the devices' queues, nor IPv6, nor routing protocols except static routes.
    PointToPointHelper link;
    link.DisableFlowControl();
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    InternetStackHelper stack;
    Ipv4StaticRoutingHelper routing;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(routing);

    link.SetDeviceAttribute("DataRate", StringValue(access));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Side near = Build(pairs, link, addresses, stack), far = Build(pairs, link, addresses, stack);
    link.SetDeviceAttribute("DataRate", StringValue(trunk));
    NetDeviceContainer between = link.Install(near.router, far.router);
    Ipv4InterfaceContainer interfaces = addresses.Assign(between);
    routing.GetStaticRouting(near.router->GetObject<Ipv4>())->SetDefaultRoute(interfaces.GetAddress(1), pairs + 1);
    routing.GetStaticRouting(far.router->GetObject<Ipv4>())->SetDefaultRoute(interfaces.GetAddress(0), pairs + 1);

    for (uint32_t n = 0; n < pairs; n++) {
        Ptr<Socket> listening = Socket::CreateSocket(far.hosts.Get(n), TcpSocketFactory::GetTypeId());
        listening->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        listening->Listen();
        listening->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                     MakeCallback(&Response::Accept));
    }
    auto downloads = Plan(flows, near, far, request);

    double start = CoreSeconds();
    Simulator::Run();
    double seconds = CoreSeconds() - start;

    uint64_t complete = 0, bytes = 0;
    double completion = 0;
    for (const auto& download : downloads) {
        complete += download->Complete();
        bytes += download->Received();
        completion += download->Seconds();
    }
    std::cout.precision(9);
    std::cout << "{\"core_seconds\": " << seconds
              << ", \"packets\": " << Sent(near.sending) + Sent(far.sending) + Sent(between)
              << ", \"flows\": " << downloads.size() << ", \"complete\": " << complete << ", \"bytes\": " << bytes
              << ", \"mean_fct\": " << completion / downloads.size() << "}\n";
    Simulator::Destroy();
}
