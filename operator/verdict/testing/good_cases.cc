// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/judge.h"
#include "operator/verdict/testing/cases.h"
#include "operator/verdict/testing/spoil.h"

namespace railhead::op::verdict::testing {

using kube::Json;

const std::vector<Case>& GoodCases() {
  static const auto* const kCases = new std::vector<Case>{
      {"AsItShouldBe", [](Scene&) {}},
      // To be known, and no more.
      {"AllDevicesAreInUse",
       [](Scene& s) { s.Unschedulable(3, kNoRoom); },
       {},
       {},
       {{"train-3", "RdmaDevicesInUse", {"waits for 8 of rdma/hca"}}}},
      {"ProfileHasChangedSince",
       [](Scene& s) {
         s.profiles["h100"].generation = 3;
         for (const int pod : {0, 1, 3}) {
           s.pods[pod]["metadata"]["annotations"]["railhead.io/profile"] = "h100@3";
         }
       },
       {},
       {},
       {{"train-2", "RailProfileOutdated", {"RailProfile h100", "generation 2, now 3"}}}},
      {"MemlockMakesDo",
       [](Scene& s) { Rank(s, 2).memlock_limit = 100 << 20; },
       {},
       {},
       {{"train-2", "MemlockTight", {"100.0 MiB", "would use 600.0 MiB"}}}},
      {"NoSecret",
       [](Scene& s) { Rank(s, 2).start->unauthenticated = "the pod has no controller"; },
       {},
       {},
       {{"train-2", "Unauthenticated", {"rank 2", "the pod has no controller"}}}},
      {"FewerDevicesThanGpus",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) { AsksFor(s, pod, 4); });
         s.Container(1)["resources"]["limits"]["nvidia.com/gpu"] = "8";
       },
       {},
       {},
       {{"train-1", "RdmaFewerDevicesThanGpus", {"4 RDMA devices for 8 GPUs", "8 rails"}}}},
      {"SharpOnInfiniBand",
       [](Scene& s) {
         All(s, [&](int pod) {
           s.WeSet(pod, "NCCL_COLLNET_ENABLE", "1");
           s.WeSet(pod, "NCCL_NET_PLUGIN", "sharp");
         });
       }},
      {"SharpThatIsNotWantedOnEthernet",
       [](Scene& s) {
         for (Json& node : s.nodes) {
           node["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
         }
         s.WithoutReports();
         All(s, [&](int pod) { s.WeSet(pod, "NCCL_COLLNET_ENABLE", "0"); });
       }},
      // Nodes that are on their way.
      {"NodesWithTheResourceMayBeMade",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         s.waiting = kUntilNodesCome - absl::Seconds(1);
         OfAPool(s);
         Resource(s, "allocatable", {{"cpu", "8"}});
         Resource(s, "capacity", {{"cpu", "8"}});
       },
       {},
       {},
       {{"train-3", "RdmaResourceUnknown", {"unless such nodes are being created"}}}},
      {"NodesWithMoreMayBeMade",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         s.waiting = kUntilNodesCome - absl::Seconds(1);
         OfAPool(s);
         Resource(s, "allocatable", {{"rdma/hca", "4"}});
         Resource(s, "capacity", {{"rdma/hca", "4"}});
       },
       {},
       {},
       {{"train-3", "RdmaTooManyDevices", {"unless such nodes are being created"}}}},
      {"AnAgentIsJustStartingAgain",
       [](Scene& s) {
         s.Unschedulable(3, kNoRoom);
         s.waiting = kUntilAgentsCome - absl::Seconds(1);
         Resource(s, "allocatable", {{"rdma/hca", "0"}});
       },
       {},
       {},
       {{"train-3", "RdmaRailsDownAtNodes", {"unless its node agent"}}},
       true},
      {"ItLacksAnotherResourceThatIsNamedAlike",
       [](Scene& s) {
         s.Unschedulable(3, "0/4 nodes are available: 4 Insufficient rdma/hca-storage.");
         Resource(s, "capacity", {{"rdma/hca", "4"}});
         Resource(s, "allocatable", {{"rdma/hca", "4"}});
       }},
      {"PlainNcclInTheNetworkOfOneNode",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) {
           s.pods[pod]["spec"]["hostNetwork"] = true;
           s.pods[pod]["spec"]["nodeName"] = "n0";
         });
       }},
      {"AStatefulSetThatIsBeingChanged",
       [](Scene& s) {
         MakeStatefulSet(s);
         for (const int pod : {2, 3}) {
           s.pods[pod]["metadata"]["labels"]["controller-revision-hash"] = "train-2";
           AsksFor(s, pod, 4);
           EditGiven(Rank(s, pod), [](auto& rails) { rails.resize(4); });
         }
         All(s, [&](int pod) { s.WeSet(pod, "NCCL_IB_TC", pod < 2 ? "106" : "104"); });
       }},
      {"AStatefulSetWhoseProfileHasChanged",
       [](Scene& s) {
         MakeStatefulSet(s);
         s.profiles["other"] = {1, Fabric::kInfiniBand, RequireRdma::kWarn};
         s.pods[3]["metadata"]["annotations"]["railhead.io/profile"] = "other@1";
         All(s, [&](int pod) { s.WeSet(pod, "NCCL_IB_TC", pod < 3 ? "106" : "104"); });
       }},
      {"AStatefulSetOfServersThatKnowNothingOfEachOther",
       [](Scene& s) {
         MakeStatefulSet(s);
         s.WithoutReports();
         s.nodes[1]["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
         AsksFor(s, 2, 4);
       }},
      {"AJobThatWorksThroughAList",
       [](Scene& s) {
         All(s, [&](int pod) {
           s.pods[pod]["metadata"]["annotations"]["railhead.io/world-size"] = "100";
           s.WeSet(pod, "NCCL_IB_TC", absl::StrCat(pod));
         });
         s.WithoutReports();
         s.nodes[1]["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
       }},
      {"InterfacesThatAreYetToBeAdded",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) {
           s.UserSets(pod, "NCCL_SOCKET_IFNAME", "net1");
           s.pods[pod]["status"]["phase"] = "Pending";
           s.pods[pod]["status"]["containerStatuses"][0]["state"] = {{"waiting", Json::object()}};
         });
       }},
      {"AnInterfaceThatItsRanksHaveMetBy",
       [](Scene& s) {
         All(s, [&](int pod) { s.UserSets(pod, "RAILHEAD_SOCKET_IFNAME", "net1"); });
       }},
      {"ALinkThatFlaps",
       [](Scene& s) {
         LoseRail(s, 2, 6, {1, 3});
         SetRail(s, 2, 6, false, "port 1 is DOWN");
         s.just_lost = {{"n2", "mlx5_6"}};
       },
       {},
       {},
       {},
       true},
      {"ALinkThatFlapsUnderAPodThatReportsNothing",
       [](Scene& s) {
         s.WithoutReports();
         SetRail(s, 2, 6, false, "port 1 is DOWN");
         s.just_lost = {{"n2", "mlx5_6"}};
       },
       {},
       {},
       {},
       true},
      {"OlderThanOurWebhook",
       [](Scene& s) {
         s.settings.admission_since = absl::FromUnixSeconds(1767225600);
         All(s, [&](int pod) {
           s.pods[pod]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
           s.pods[pod]["metadata"]["annotations"].erase("railhead.io/injected");
         });
       },
       {},
       {},
       {},
       true},
      {"NobodyLooksAtPodsThatMissedAdmission",
       [](Scene& s) {
         s.settings.tells_missed = false;
         s.pods[1]["metadata"]["annotations"].erase("railhead.io/injected");
       },
       {},
       {},
       {},
       true},
      {"APluginRaisesTheLimit",
       [](Scene& s) {
         s.settings.memlock_raised = true;
         s.WithoutReports();
         All(s, [&](int pod) { s.pods[pod]["spec"]["securityContext"] = {{"runAsUser", 1000}}; });
       },
       {},
       {},
       {},
       true},
      {"NcclAloneReportsNothing", [](Scene& s) { s.WithoutReports(); }},
      {"TcpByProfile",
       [](Scene& s) {
         s.profiles["h100"].fabric = Fabric::kTcp;
         FallBackToTcp(s, "");
         All(s, [&](int pod) {
           s.WeSet(pod, "NCCL_IB_DISABLE", "1");
           s.WeSet(pod, "RAILHEAD_TRANSPORT", "tcp");
           Rank(s, pod).degraded.clear();
           Rank(s, pod).start->requested = "tcp";
           Rank(s, pod).given = {};
         });
       }},
      {"TcpThatTheProfileAllows",
       [](Scene& s) {
         s.profiles["h100"].require_rdma = RequireRdma::kAllow;
         FallBackToTcp(s, "rank 1: port 1 is DOWN");
         BreakRail(s, 1, 0, "port 1 is DOWN", "port");
         All(s, [&](int pod) { Rank(s, pod).start->fallback = "allow"; });
       }},
      {"TcpThatTheUserAllows",
       [](Scene& s) {
         FallBackToTcp(s, "rank 1: port 1 is DOWN");
         All(s, [&](int pod) {
           s.UserSets(pod, "RAILHEAD_FALLBACK", "allow");
           Rank(s, pod).start->fallback = "allow";
         });
       }},
      {"PolicyWarnWithNothingToWarnOf",
       [](Scene& s) { All(s, [&](int pod) { s.WeSet(pod, "RAILHEAD_FALLBACK", "warn"); }); }},
      {"PolicyFailThatIsKept",
       [](Scene& s) {
         s.profiles["h100"].require_rdma = RequireRdma::kFail;
         All(s, [&](int pod) {
           s.UserSets(pod, "RAILHEAD_FALLBACK", "fail");
           Rank(s, pod).start->fallback = "fail";
         });
       }},
      {"JustStarted",
       [](Scene& s) {
         s.reporting[3] = false;
         s.silence[3] = absl::Seconds(20);
       },
       {},
       {},
       {},
       true},
      {"NotAskedYet", [](Scene& s) { s.reporting[3] = false; }, {}, {}, {}, true},
      // What its report would take back.
      {"ItsRuntimeStillStarts",
       [](Scene& s) {
         s.WithoutReports();
         s.silence.assign(4, absl::Seconds(59));
         All(s, [&](int pod) {
           s.pods[pod]["spec"]["securityContext"] = {{"runAsUser", 1000}};
           s.Container(pod).erase("volumeMounts");
           s.UserSets(pod, "NCCL_IB_DISABLE", "1");
         });
         SetRail(s, 2, 6, false, "port 1 is DOWN");
         s.nodes[1]["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
       },
       {},
       {},
       {},
       true},
      {"APodIsGoneAndTakesAllLinksWithIt",
       [](Scene& s) {
         s.pods[2]["metadata"]["deletionTimestamp"] = "2026-01-01T00:50:00Z";
         for (const int rail : {0, 1, 2, 3, 4, 5, 6, 7}) LoseRail(s, 2, rail, {1, 3});
       }},
      {"ANodeIsCutOff",
       [](Scene& s) {
         s.reporting[2] = false;
         s.silence[2] = absl::Hours(1);
         for (const int rail : {0, 1, 2, 3, 4, 5, 6, 7}) LoseRail(s, 2, rail, {1, 3});
         All(s, [&](int pod) { Rank(s, pod).start->world_size = 3; });
       },
       {},
       {},
       {},
       true},
      {"ARailThatWasJustLost",
       [](Scene& s) {
         LoseRail(s, 2, 6, {1, 3});
         s.unchanged.assign(4, absl::Seconds(19));
       },
       {},
       {},
       {},
       true},
      {"TheJobIsStillBeingCreated",
       [](Scene& s) {
         s.comparable = false;
         s.WithoutReports();
         AsksFor(s, 3, 4);
         s.WeSet(1, "NCCL_IB_TC", "0");
         s.WeSet(0, "NCCL_IB_TC", "106");
         s.nodes[1]["metadata"]["labels"]["railhead.io/link-layer"] = "Ethernet";
       },
       {},
       {},
       {},
       true},
      {"AllRanksAreSeenAndOnePodHasNone",
       [](Scene& s) {
         All(s, [&](int pod) { Rank(s, pod).start->world_size = 3; });
         s.reporting[3] = false;
         s.silence[3] = absl::Hours(1);
       }},
      {"CreatedAndNotScheduledYet",
       [](Scene& s) {
         for (Json& pod : s.pods) {
           pod["spec"].erase("nodeName");
           pod["status"] = {{"phase", "Pending"}};
         }
         s.WithoutReports();
       }},
      {"WaitsForSomethingElse",
       [](Scene& s) {
         s.Unschedulable(3, "0/4 nodes are available: 4 Insufficient cpu.");
         Resource(s, "capacity", {{"rdma/hca", "4"}});
         Resource(s, "allocatable", {{"rdma/hca", "4"}});
       }},
      {"ContainersStillStart",
       [](Scene& s) {
         for (Json& pod : s.pods) {
           pod["status"]["phase"] = "Pending";
           pod["status"]["containerStatuses"][0]["state"] = {{"waiting", Json::object()}};
         }
         s.WithoutReports();
       }},
      {"OnePodIsAboutToGo",
       [](Scene& s) {
         s.pods[2]["metadata"]["deletionTimestamp"] = "2026-01-01T00:50:00Z";
         FallBackToTcp(s, "rank 2");
         for (const int pod : {0, 1, 3}) Rank(s, pod).start.reset();
       }},
      {"AloneInItsJob",
       [](Scene& s) {
         s.pods = Json::array({s.pods[0]});
         RankReport& rank = Rank(s, 0);
         rank.start = {1, "tcp", "auto", "warn", "there is no rails.json", "train-0"};
         rank.used = {UsedRail{0, "eth0", "tcp", true, 0, 0}};
         rank.given = {};
       }},
      {"AllRanksInOnePodShareMemory",
       [](Scene& s) {
         s.pods = Json::array({s.pods[0]});
         const RankReport first = Rank(s, 0);
         s.reports[0].ranks.assign(4, first);
         for (int rank = 0; rank < 4; ++rank) {
           RankReport& report = s.reports[0].ranks[static_cast<size_t>(rank)];
           report.rank = rank;
           report.start->transport = "shm";
           report.used = {UsedRail{0, "memory", "shm", true, 0, 0}};
         }
       }},
      {"EightMiBAreEnoughAsTheRuntimeMeasures",
       [](Scene& s) {
         s.pods[1]["spec"]["securityContext"] = {{"runAsUser", 1000}};
         Rank(s, 1).memlock_limit = 8 << 20;
         Rank(s, 1).memlock_least = 1 << 20;
         Rank(s, 1).memlock_wanted = 8 << 20;
       }},
      {"NonRootWhereTheNodeHasNoLimit",
       [](Scene& s) {
         s.WithoutReports();
         for (Json& node : s.nodes) {
           node["metadata"]["labels"]["railhead.io/memlock-bytes"] = "unlimited";
         }
         All(s, [&](int pod) {
           s.pods[pod]["spec"]["securityContext"] = {{"runAsNonRoot", true}};
         });
       }},
      {"WithoutGpusMemoryIsTheRuntimesAffair",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) {
           s.Container(pod)["resources"]["limits"].erase("nvidia.com/gpu");
           s.Container(pod).erase("securityContext");
           s.Container(pod).erase("volumeMounts");
         });
       }},
      {"OneGpuNeedsNoSharedMemory",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) {
           s.Container(pod)["resources"]["limits"]["nvidia.com/gpu"] = 1;
           s.Container(pod).erase("volumeMounts");
         });
       }},
      {"SharedMemoryOfTheHost",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) {
           s.pods[pod]["spec"]["hostIPC"] = true;
           s.Container(pod).erase("volumeMounts");
         });
       }},
      {"HostNetworkOnDifferentNodes",
       [](Scene& s) {
         All(s, [&](int pod) {
           s.pods[pod]["spec"]["hostNetwork"] = true;
           s.UserSets(pod, "NCCL_SOCKET_IFNAME", "bond0");
         });
       }},
      {"NamesThatFit",
       [](Scene& s) {
         All(s, [&](int pod) {
           s.UserSets(pod, "NCCL_SOCKET_IFNAME", "eth");
           s.UserSets(pod, "GLOO_SOCKET_IFNAME", "eth0");
           s.UserSets(pod, "NCCL_IB_HCA", "mlx5");
         });
       }},
      {"NamesThatAreNotToBeUsed",
       [](Scene& s) {
         All(s, [&](int pod) {
           s.UserSets(pod, "NCCL_SOCKET_IFNAME", "^docker0,virbr0");
           s.UserSets(pod, "NCCL_IB_HCA", "^mlx5_9");
         });
       }},
      {"NamesThatAreWrittenElsewhere",
       [](Scene& s) {
         s.WithoutReports();
         s.UserSets(0, "NCCL_IB_HCA", "$(HCAS)");
         Json variable = {{"name", "NCCL_SOCKET_IFNAME"}};
         variable["valueFrom"]["configMapKeyRef"] = {{"name", "a"}, {"key", "b"}};
         s.Container(1)["env"].push_back(variable);
       }},
      {"InterfacesThatNobodyKnows",
       [](Scene& s) {
         s.pods[0]["metadata"]["annotations"]["networking.gke.io/interfaces"] = "[]";
         s.pods[1]["spec"]["resourceClaims"] = Json::array({{{"name", "nic"}}});
         for (const int pod : {0, 1}) s.UserSets(pod, "NCCL_SOCKET_IFNAME", "rdma0");
       }},
      {"InterfacesThatTheAgentMoved",
       [](Scene& s) {
         s.UserSets(0, "NCCL_SOCKET_IFNAME", "rail0,rail1");
         s.UserSets(1, "GLOO_SOCKET_IFNAME", "rail1");
       }},
      {"GpuDirectAsAskedFor",
       [](Scene& s) {
         s.nodes[0]["metadata"]["labels"]["railhead.io/gpudirect"] = "dmabuf";
         s.nodes[1]["metadata"]["labels"].erase("railhead.io/gpudirect");
         All(s, [&](int pod) { s.WeSet(pod, "NCCL_NET_GDR_LEVEL", "PHB"); });
       }},
      {"NoGpuDirectAndNobodyAsks",
       [](Scene& s) {
         for (Json& node : s.nodes) node["metadata"]["labels"]["railhead.io/gpudirect"] = "none";
         All(s, [&](int pod) { s.UserSets(pod, "NCCL_NET_GDR_LEVEL", "LOC"); });
       }},
      {"NcclOverIwarpIsMeantToUseTcp",
       [](Scene& s) {
         s.profiles["h100"].fabric = Fabric::kIwarp;
         All(s, [&](int pod) { s.UserSets(pod, "NCCL_IB_DISABLE", "1"); });
       }},
      {"ANodeWithBothKindsOfPorts",
       [](Scene& s) {
         All(s, [&](int pod) {
           EditGiven(Rank(s, pod), [](auto& rails) { rails[7].link_layer = "Ethernet"; });
         });
         s.nodes[0]["metadata"]["labels"]["railhead.io/link-layer"] = "mixed";
       }},
      {"ARailThatIsDownAndNotThePods",
       [](Scene& s) {
         s.WithoutReports();
         All(s, [&](int pod) { AsksFor(s, pod, 2); });
         SetRail(s, 1, 7, false, "port 1 is DOWN");
       }},
      {"ItsProfileIsNoMore", [](Scene& s) { s.profiles.clear(); }},
      {"NothingIsKnownOfNodes",
       [](Scene& s) {
         s.nodes = Json::array();
         s.Unschedulable(3, kNoRoom);
       }},
      {"AnOlderRuntimeThatSaysLess",
       [](Scene& s) {
         All(s, [&](int pod) {
           RankReport& rank = Rank(s, pod);
           rank.start.reset();
           rank.given = {};
           rank.memlock_limit.reset();
           rank.memlock_wanted.reset();
           rank.memlock_least.reset();
           rank.shared_memory.reset();
         });
       }},
  };
  return *kCases;
}

}  // namespace railhead::op::verdict::testing
