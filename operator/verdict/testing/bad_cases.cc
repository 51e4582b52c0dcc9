// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/judge.h"
#include "operator/verdict/testing/cases.h"
#include "operator/verdict/testing/spoil.h"

namespace railhead::op::verdict::testing {
namespace {

std::vector<Expected> OnAll(const std::string& reason, const std::vector<std::string>& says) {
  std::vector<Expected> all;
  for (int pod = 0; pod < 4; ++pod) all.push_back({absl::StrCat("train-", pod), reason, says});
  return all;
}

std::vector<Expected> operator+(std::vector<Expected> a, const std::vector<Expected>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

using kube::Json;

const std::vector<Case>& BadCases() {
  static const auto* const kCases = new std::vector<Case>{
      {"NoNodeOffersTheResource",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         Resource(s, "allocatable", {{"cpu", "8"}});
         Resource(s, "capacity", {{"cpu", "8"}});
       },
       {{"train-3", "RdmaResourceUnknown", {"no node offers rdma/hca", "node agents run"}}},
       kUntilAgentsCome + absl::Seconds(5),
       {{"train-3", "RdmaResourceUnknown", {"unless the node agents are still starting"}}}},
      {"ANameThatNoNodeKnows",
       [](Scene& s) {
         s.Container(3)["resources"]["limits"].erase("rdma/hca");
         s.Container(3)["resources"]["limits"]["rdma/hcas"] = "8";
         s.Unschedulable(3, "0/4 nodes are available: 4 Insufficient rdma/hcas.");
       },
       {{"train-3", "RdmaResourceUnknown", {"no node offers rdma/hcas", "correct the"}}}},
      {"NoNodeOfThePoolHasAsManyAndNoneComes",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         OfAPool(s);
         Resource(s, "allocatable", {{"rdma/hca", "4"}});
         Resource(s, "capacity", {{"rdma/hca", "4"}});
       },
       {{"train-3", "RdmaTooManyDevices", {"requests 8 of rdma/hca", "request at most 4"}}},
       kUntilNodesCome,
       {{"train-3", "RdmaTooManyDevices", {"unless such nodes are being created"}}},
       true},
      {"NoAgentSaysWhyNothingIsInOrder",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         Resource(s, "allocatable", {{"rdma/hca", "0"}});
       },
       {{"train-3", "RdmaRailsDownAtNodes", {"node n0 has 0 of 8 usable"}}},
       kUntilAgentsCome + absl::Seconds(5),
       {{"train-3", "RdmaRailsDownAtNodes", {"unless its node agent is still starting"}}}},
      {"NoNodeHasAsMany",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         Resource(s, "allocatable", {{"rdma/hca", "4"}});
         Resource(s, "capacity", {{"rdma/hca", "4"}});
       },
       {{"train-3", "RdmaTooManyDevices", {"requests 8 of rdma/hca", "request at most 4"}}}},
      {"EnoughIfItsRailsWorked",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         Resource(s, "allocatable", {{"rdma/hca", "7"}});
         SetRail(s, 0, 5, false, "port 1 is DOWN");
       },
       {{"train-3",
         "RdmaRailsDownAtNodes",
         {"node n0, rail 5 (mlx5_5): port 1 is DOWN", "repair the cable"}}}},
      {"MissedAdmission",
       [](Scene& s) {
         s.pods[1]["metadata"]["annotations"].erase("railhead.io/injected");
         s.pods[1]["metadata"]["annotations"].erase("railhead.io/profile");
       },
       {{"train-1", "RdmaAdmissionMissed", {"recreate the pod"}}}},
      {"AdmissionCouldNotDoAll",
       [](Scene& s) {
         // What nobody asked for is not told; and a pod may say what it likes.
         s.pods[1]["metadata"]["annotations"]["railhead.io/not-done"] =
             "SizeUnknown/NoStamp\nNoJob/NoOwner\nAnything/Else z\nNoIndex: no RANK; run this\n";
       },
       {{"train-1",
         "RailheadNotDone",
         {"SizeUnknown: no RANK or WORLD_SIZE: annotation", "recreate the Job"}}}},
      {"ProfilesDiffer",
       [](Scene& s) { s.pods[2]["metadata"]["annotations"]["railhead.io/profile"] = "roce@1"; },
       {{"train-2", "RailProfilesDiffer", {"roce@1", "pod train-0", "h100@2"}}}},
      {"PolicyFailIsOverridden",
       [](Scene& s) {
         s.profiles["h100"].require_rdma = RequireRdma::kFail;
         s.UserSets(0, "RAILHEAD_FALLBACK", "warn");
       },
       {{"train-0", "RdmaPolicyOverridden", {"RAILHEAD_FALLBACK=warn", "RailProfile h100"}}}},
      {"RankIsWrittenIntoTheTemplate",
       [](Scene& s) { All(s, [&](int pod) { s.UserSets(pod, "RANK", "0"); }); },
       {{"train-1", "RankOverridden", {"RANK=0", "completion index is 1", "remove RANK"}},
        {"train-2", "RankOverridden", {"RANK=0", "completion index is 2"}},
        {"train-3", "RankOverridden", {"RANK=0", "completion index is 3"}}}},
      {"UserSwitchesRdmaOffForNccl",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) { s.UserSets(pod, "NCCL_IB_DISABLE", "1"); });
       },
       OnAll("RdmaDisabledByUser", {"container trainer", "NCCL_IB_DISABLE=1", "remove"})},
      {"UserTakesNcclsSockets",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) { s.UserSets(pod, "NCCL_NET", "socket"); });
       },
       OnAll("RdmaDisabledByUser", {"NCCL_NET=socket"})},
      {"UserTakesTcp",
       [](Scene& s) {
         FallBackToTcp(s, "rank 0: RAILHEAD_TRANSPORT=tcp is set there");
         All(s, [&](int pod) {
           s.UserSets(pod, "RAILHEAD_TRANSPORT", "tcp");
           Rank(s, pod).start->requested = "tcp";
           Rank(s, pod).given = {};
         });
       },
       OnAll("RdmaDisabledByUser", {"RAILHEAD_TRANSPORT=tcp"})},
      {"WrongNameOfAnHca",
       [](Scene& s) {
         s.WithoutReports();
         s.UserSets(1, "NCCL_IB_HCA", "=roce0:1,roce1:1");
       },
       {{"train-1",
         "NcclHcaUnknown",
         {"NCCL_IB_HCA==roce0:1", "mlx5_0, mlx5_1", "node n1", "remove the variable"}}}},
      {"HcaOfTheNodeThatThePodWasNotGiven",
       [](Scene& s) {
         All(s, [&](int pod) {
           AsksFor(s, pod, 1);
           EditGiven(Rank(s, pod), [](auto& rails) { rails.resize(1); });
           EditUsed(Rank(s, pod), [](auto& rails) { rails.resize(1); });
         });
         s.UserSets(1, "NCCL_IB_HCA", "mlx5_7");
       },
       {{"train-1", "NcclHcaUnknown", {"none of the devices mlx5_0 of"}}}},
      {"WrongNameOfAnInterface",
       [](Scene& s) { s.UserSets(2, "NCCL_SOCKET_IFNAME", "=eno1"); },
       {{"train-2", "SocketInterfaceUnknown", {"NCCL_SOCKET_IFNAME==eno1", "eth0, lo"}}}},
      {"InterfaceThatNoNetworkOfThePodHas",
       [](Scene& s) {
         s.pods[2]["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] =
             R"([{"name": "a", "interface": "eth0"}, {"name": "b", "interface": "net1"}])";
         s.WeSet(2, "GLOO_SOCKET_IFNAME", "net2");
       },
       {{"train-2", "SocketInterfaceUnknown", {"GLOO_SOCKET_IFNAME=net2", "eth0, lo, net1"}}}},
      {"NoGpuDirectWhereItIsAskedFor",
       [](Scene& s) {
         s.nodes[3]["metadata"]["labels"]["railhead.io/gpudirect"] = "none";
         All(s, [&](int pod) { s.WeSet(pod, "NCCL_NET_GDR_LEVEL", "PHB"); });
       },
       {{"train-3", "GpuDirectMissing", {"NCCL_NET_GDR_LEVEL=PHB", "node n3", "nvidia_peermem"}}}},
      {"NoGpuDirectForReads",
       [](Scene& s) {
         s.nodes[3]["metadata"]["labels"]["railhead.io/gpudirect"] = "none";
         s.WeSet(3, "NCCL_NET_GDR_READ", "1");
       },
       {{"train-3", "GpuDirectMissing", {"NCCL_NET_GDR_READ=1"}}}},
      {"SharpOnEthernet",
       [](Scene& s) {
         for (Json& node : s.nodes) {
           node["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
         }
         s.WithoutReports();
         s.UserSets(1, "NCCL_COLLNET_ENABLE", "1");
       },
       {{"train-1",
         "SharpNotPossible",
         {"NCCL_COLLNET_ENABLE=1", "the rails of node n1 are Ethernet",
          "railhead.io/link-layer: InfiniBand"}}}},
      {"SharpWithAPluginThatLacksIt",
       [](Scene& s) {
         s.WeSet(2, "NCCL_COLLNET_ENABLE", "1");
         s.WeSet(2, "NCCL_NET_PLUGIN", "/opt/railhead/nccl-net/libnccl-net-railhead.so");
       },
       {{"train-2",
         "SharpNotPossible",
         {"Railhead's NCCL plugin has no CollNet", "spec.nccl.collnetPlugin"}}}},
      {"MemlockOf8MiBAsNonRoot",
       [](Scene& s) {
         s.WithoutReports();
         s.pods[1]["spec"]["securityContext"] = {{"runAsUser", 1000}};
       },
       {{"train-1",
         "MemlockTooLow",
         {"container trainer", "may lock only 8.0 MiB",
          "IPC_LOCK has no effect for a user other than root"}}}},
      {"MemlockOf8MiBWithoutTheCapability",
       [](Scene& s) {
         s.WithoutReports();
         s.Container(1).erase("securityContext");
       },
       {{"train-1", "MemlockTooLow", {"add IPC_LOCK to securityContext.capabilities.add"}}}},
      {"MemlockAsMeasured",
       [](Scene& s) {
         Rank(s, 2).memlock_limit = 8 << 20;
         BreakRail(s, 2, 0, "cannot register 4 MiB", "memlock");
       },
       {{"train-2", "MemlockTooLow", {"may lock only 8.0 MiB", "at least 20.0 MiB"}}}},
      {"SharedMemoryAsItIsFromTheStart",
       [](Scene& s) {
         s.WithoutReports();
         s.Container(0).erase("volumeMounts");
       },
       {{"train-0", "SharedMemoryTooSmall", {"64.0 MiB of /dev/shm for 8 GPUs", "emptyDir"}}}},
      {"SharedMemoryAsMeasured",
       [](Scene& s) { Rank(s, 0).shared_memory = 64 << 20; },
       {{"train-0", "SharedMemoryTooSmall", {"64.0 MiB"}}}},
      {"SharedMemoryOfTheUsersOwn",
       [](Scene& s) {
         s.WithoutReports();
         s.pods[0]["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] = "32Mi";
       },
       {{"train-0", "SharedMemoryTooSmall", {"32.0 MiB"}}}},
      {"OneRankWithoutRailsMakesAllUseTcp",
       [](Scene& s) {
         FallBackToTcp(s, "rank 1: there is no /run/railhead/rails.json");
         Rank(s, 1).given = {};
         Rank(s, 1).start->trouble = "there is no /run/railhead/rails.json";
       },
       OnAll("RdmaNotUsed", {"TCP although RDMA was requested", "rank 1"}) +
           std::vector<Expected>{{"train-1", "RdmaRailsNotGiven", {"rank 1 has no RDMA rails"}}}},
      {"NobodyWasGivenRailsAndNobodySaysSo",
       [](Scene& s) {
         FallBackToTcp(s, "");
         All(s, [&](int pod) {
           Rank(s, pod).degraded.clear();
           Rank(s, pod).given = {};
           Rank(s, pod).start->trouble = "there is no rails.json";
         });
       },
       OnAll("RdmaRailsNotGiven", {"there is no rails.json", "node agent"})},
      {"NoUverbs",
       [](Scene& s) { BreakRail(s, 1, 3, "no such device", "device_node"); },
       {{"train-1",
         "RdmaDeviceNodeMissing",
         {"rank 1", "rail 3 (mlx5_3)", "load ib_uverbs on node n1"}}}},
      {"LinkDownAtTheStart",
       [](Scene& s) {
         BreakRail(s, 1, 3, "port 1 is DOWN", "port");
         SetRail(s, 1, 3, false, "port 1 is DOWN");
       },
       {{"train-1",
         "RailPortDown",
         {"without rail 3 (mlx5_3)", "port 1 is DOWN", "switch port of node n1"}}}},
      {"LinkThatOnlyThePodCallsDown",
       [](Scene& s) { BreakRail(s, 1, 3, "port 1 is DOWN", "port"); },
       {{"train-1", "RailUnusable", {"rail 3 (mlx5_3): port 1 is DOWN", "--preflight"}}}},
      {"RailThatDoesNotConnect",
       [](Scene& s) { BreakRail(s, 1, 3, "no answer from rank 2", "other"); },
       {{"train-1", "RailUnusable", {"rail 3 (mlx5_3): no answer from rank 2", "--preflight"}}}},
      {"RailLostWhileItRuns",
       [](Scene& s) {
         LoseRail(s, 2, 6, {1, 3});
         SetRail(s, 2, 6, false, "port 1 is DOWN");
       },
       {{"train-2", "RailDown", {"rail 6 (mlx5_6) of node n2: port 1 is DOWN", "by itself"}}}},
      {"RailLostThatNoAgentKnowsOf",
       [](Scene& s) {
         LoseRail(s, 2, 6, {1, 3});
       },
       {{"train-2", "RailPathLost", {"rail 6 (mlx5_6) of node n2", "2 other pods"}}},
       kRailPatience + absl::Seconds(15)},
      {"RailLostWhereNobodyCanTellWhose",
       [](Scene& s) {
         for (const int pod : {1, 3}) {
           EditUsed(Rank(s, pod), [](auto& rails) {
             rails[6].up = false;
             rails[6].lost_peers = 1;
           });
         }
       },
       {{"train-1", "RailPathLost", {"rail 6 (mlx5_6) of node n1", "1 other pods", "switches"}}},
       kRailPatience + absl::Seconds(15)},
      {"AllRailsOfANodeAsItsAgentSays",
       [](Scene& s) {
         for (const int rail : {0, 1, 2, 3, 4, 5, 6, 7}) {
           LoseRail(s, 2, rail, {1, 3});
           if (rail < 2) SetRail(s, 2, rail, false, "port 1 is DOWN");
         }
       },
       {{"train-2", "RailDown", {"of node n2: port 1 is DOWN"}},
        {"train-2", "RailDown", {"of node n2: port 1 is DOWN"}}}},
      {"RailDownUnderAPodThatReportsNothing",
       [](Scene& s) {
         s.WithoutReports();
         SetRail(s, 2, 6, false, "port 1 is DOWN");
       },
       {{"train-2", "RailDown", {"rail 6 (mlx5_6) of node n2: port 1 is DOWN"}}}},
      {"OneRankReportsNothing",
       [](Scene& s) {
         s.reporting[3] = false;
         s.silence[3] = absl::Hours(1);
       },
       {{"train-3", "RuntimeSilent", {"port 9402", "3 other pods", "NetworkPolicies admit"}}},
       kSilence + absl::Seconds(20)},
      {"TwoPodsOnOneHostsNetwork",
       [](Scene& s) {
         for (const int pod : {0, 1}) {
           s.pods[pod]["spec"]["hostNetwork"] = true;
           s.pods[pod]["spec"]["nodeName"] = "n0";
         }
         s.reporting[1] = false;  // who came first has the port
       },
       {{"train-1", "MetricsPortShared", {"node n0", "port 9402", "pod train-0"}}}},
      {"TrafficClassesDiffer",
       [](Scene& s) {
         All(s, [&](int pod) { s.WeSet(pod, "NCCL_IB_TC", pod == 1 ? "0" : "106"); });
       },
       {{"train-1", "RdmaEnvironmentDiffers", {"NCCL_IB_TC=0", "pod train-0", "NCCL_IB_TC=106"}}}},
      {"OnePodAsksForFewerDevices",
       [](Scene& s) {
         AsksFor(s, 3, 4);
         EditGiven(Rank(s, 3), [](auto& rails) { rails.resize(4); });
         All(s, [&](int pod) { EditUsed(Rank(s, pod), [](auto& rails) { rails.resize(4); }); });
       },
       {{"train-3", "RdmaDeviceCountsDiffer", {"requests 4", "pod train-0", "requests 8"}}}},
      {"WrongRail",
       [](Scene& s) {
         FallBackToTcp(s, "no rail works on every rank");
         All(s, [&](int pod) {
           AsksFor(s, pod, 1);
           auto& given = Rank(s, pod).given;
           given = {GivenRail(given[pod == 2 ? 5 : 0])};
         });
       },
       OnAll("RdmaNotUsed", {"no rail works on every rank"}) +
           std::vector<Expected>{
               {"train-2", "RailsDiffer", {"rank 2 was given rails 5", "rank 0 in pod train-0"}}}},
      {"InfiniBandAndRoceInOneJob",
       [](Scene& s) {
         EditGiven(Rank(s, 1), [](auto& rails) {
           for (GivenRail& rail : rails) {
             rail.link_layer = "Ethernet";
             rail.rate = "200 Gb/sec (4X HDR)";
           }
         });
       },
       {{"train-1", "LinkLayerMixed", {"has Ethernet (node n1)", "InfiniBand", "nodeSelector"}}}},
      {"InfiniBandAndRoceAsTheNodesSay",
       [](Scene& s) {
         s.WithoutReports();
         s.nodes[1]["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
       },
       {{"train-1", "LinkLayerMixed", {"has Ethernet (node n1)"}}}},
      {"MtusDiffer",
       [](Scene& s) {
         EditGiven(Rank(s, 1), [](auto& rails) {
           for (GivenRail& rail : rails) rail.mtu = 1024;
         });
       },
       {{"train-1", "RailMtuDiffers", {"rail 0 (mlx5_0) has an MTU of 1024", "4096"}}}},
      {"ALinkThatTrainedDown",
       [](Scene& s) {
         EditGiven(Rank(s, 1), [](auto& rails) { rails[2].rate = "200 Gb/sec (2X NDR)"; });
       },
       {{"train-1", "RailRateDiffers", {"rail 2 (mlx5_2)", "200 Gb/sec (2X NDR)", "reseat"}}}},
  };
  return *kCases;
}

}  // namespace railhead::op::verdict::testing
