// SPDX-License-Identifier: Apache-2.0
//
// What caches of a large cluster's nodes and pods cost: memory of this process, and time to be
// filled, with a made-up API server in the same process that sends objects as long as real ones.
//
// usage: railhead_kube_cache_bench [NODES [PODS]]     5000 and 20000 by default
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kube/cache/cache.h"
#include "kube/cache/reflector.h"
#include "kube/monotonic.h"

namespace railhead::kube {
namespace {

// About what kubectl shows of an object that several controllers have written.
std::string ManagedFields(int managers) {
  std::string fields;
  for (int i = 0; i < managers; ++i) {
    absl::StrAppend(
        &fields, i == 0 ? "" : ",", R"({"manager":"controller-)", i,
        R"(","operation":"Update","apiVersion":"v1","time":"2026-11-22T18:00:00Z",)",
        R"("fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},)",
        R"("f:app":{},"f:job":{}}},"f:status":{"f:conditions":{".":{},)",
        R"("k:{\"type\":\"Ready\"}":{".":{},"f:lastHeartbeatTime":{},"f:status":{}}}}}})");
  }
  return fields;
}

std::string Node(int i, int version) {
  std::string images;
  for (int image = 0; image < 50; ++image) {
    absl::StrAppend(&images, image == 0 ? "" : ",", R"({"names":["registry.example/team/image-)",
                    image, "@sha256:", std::string(64, 'a'), R"(","registry.example/team/image-)",
                    image, R"(:v1"],"sizeBytes":123456789})");
  }
  return absl::StrCat(
      R"({"metadata":{"name":"node-)", i, R"(","uid":"uid-node-)", i, R"(","resourceVersion":")",
      version, R"(","labels":{"kubernetes.io/hostname":"node-)", i,
      R"(","railhead.io/leaf":"lf0127"},"annotations":{"railhead.io/rails":")",
      std::string(600, 'r'), R"("},"managedFields":[)", ManagedFields(6),
      R"(]},"spec":{},"status":{"allocatable":{"rdma/hca":"8","nvidia.com/gpu":"8"},)",
      R"("conditions":[{"type":"Ready","status":"True"}],"images":[)", images, "]}}");
}

std::string Pod(int i, int version) {
  std::string environment;
  for (int variable = 0; variable < 40; ++variable) {
    absl::StrAppend(&environment, variable == 0 ? "" : ",", R"({"name":"VARIABLE_)", variable,
                    R"(","value":"some value of a variable"})");
  }
  return absl::StrCat(
      R"({"metadata":{"namespace":"team-)", i % 40, R"(","name":"job-)", i / 64, "-worker-", i % 64,
      R"(","uid":"00000000-0000-0000-0000-)", i, R"(","resourceVersion":")", version,
      R"(","labels":{"job":"job-)", i / 64, R"("},"managedFields":[)", ManagedFields(4),
      R"(]},"spec":{"nodeName":"node-)", i / 4, R"(","containers":[{"name":"main","env":[)",
      environment, R"(],"resources":{"limits":{"rdma/hca":"2","nvidia.com/gpu":"2"}}}]},)",
      R"("status":{"phase":"Running"}})");
}

// Lists of made-up objects, and a watch in which every object changes twice.
class LargeCluster final : public Api {
 public:
  LargeCluster(int nodes, int pods) : nodes_(nodes), pods_(pods) {}

  absl::StatusOr<Json> Call(const ApiRequest& request) override {
    const size_t token = request.path.find("continue=");
    int at = 0;
    if (token != std::string::npos && !absl::SimpleAtoi(request.path.substr(token + 9), &at)) {
      return absl::InvalidArgumentError("no such page");
    }
    const int end = std::min(at + 250, Count(request.path));
    std::string text = R"({"items":[)";
    for (int i = at; i < end; ++i) {
      absl::StrAppend(&text, i == at ? "" : ",", Object(request.path, i, 1));
    }
    absl::StrAppend(&text, R"(],"metadata":{"resourceVersion":"1","continue":")",
                    end < Count(request.path) ? absl::StrCat(end) : "", R"("}})");
    return ParseJson(text);
  }
  absl::Status Stream(const StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    for (int version = 2; version < 4; ++version) {
      for (int i = 0; i < Count(request.path); ++i) {
        const std::string line = absl::StrCat(R"({"type":"MODIFIED","object":)",
                                              Object(request.path, i, version), "}\n");
        if (absl::Status taken = on_bytes(line); !taken.ok()) return taken;
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool IsNodes(const std::string& path) { return absl::StrContains(path, "/nodes"); }
  int Count(const std::string& path) const { return IsNodes(path) ? nodes_ : pods_; }
  static std::string Object(const std::string& path, int i, int version) {
    return IsNodes(path) ? Node(i, version) : Pod(i, version);
  }

  const int nodes_;
  const int pods_;
};

// What a placement has to know.
struct NodeFacts {
  std::map<std::string, std::string> labels;
  std::string rails;
  std::string hcas;
  bool operator==(const NodeFacts&) const = default;
};
struct PodFacts {
  std::string uid;
  std::string node;
  std::string phase;
  std::string job;
  std::string hcas;
  bool operator==(const PodFacts&) const = default;
};

std::optional<NodeFacts> StripNode(const Json& node) {
  NodeFacts facts;
  if (const Json* labels = FindPath(node, {"metadata", "labels"}); labels != nullptr) {
    for (const auto& [key, value] : labels->items()) facts.labels[key] = value.get<std::string>();
  }
  facts.rails = StringAt(node, {"metadata", "annotations", "railhead.io/rails"});
  facts.hcas = StringAt(node, {"status", "allocatable", "rdma/hca"});
  return facts;
}

std::optional<PodFacts> StripPod(const Json& pod) {
  PodFacts facts;
  facts.uid = StringAt(pod, {"metadata", "uid"});
  facts.node = StringAt(pod, {"spec", "nodeName"});
  facts.phase = StringAt(pod, {"status", "phase"});
  facts.job = StringAt(pod, {"metadata", "labels", "job"});
  facts.hcas = StringAt(pod["spec"]["containers"][0], {"resources", "limits", "rdma/hca"});
  return facts;
}

// In MiB, of this process: "VmRSS" now, "VmHWM" at most so far.
double Memory(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, what + ":")) return std::atof(line.c_str() + what.size() + 1) / 1024;
  }
  return 0;
}

void Row(const char* when, absl::Time since) {
  std::printf("| %s | %.1f | %.1f | %.1f |\n", when, absl::ToDoubleSeconds(MonotonicNow() - since),
              Memory("VmRSS"), Memory("VmHWM"));
}

int Run(int nodes, int pods) {
  std::printf("%d nodes of %zu bytes, %d pods of %zu bytes\n\n", nodes, Node(0, 1).size(), pods,
              Pod(0, 1).size());
  std::printf("| | seconds | MiB | maximum, MiB |\n|---|---|---|---|\n");
  LargeCluster cluster(nodes, pods);
  absl::Time begin = MonotonicNow();
  Row("nothing yet", begin);
  Cache<NodeFacts> node_cache(StripNode);
  Cache<PodFacts> pod_cache(StripPod);
  const auto ignore = [](const absl::Status&) {};
  Reflector node_reflector({.collection = {"v1", "nodes", "", ""}}, &cluster, &node_cache,
                           SystemRandom(), MonotonicNow, ignore);
  Reflector pod_reflector({.collection = {"v1", "pods", "", ""}}, &cluster, &pod_cache,
                          SystemRandom(), MonotonicNow, ignore);
  const auto both = [&] {
    std::jthread thread([&](const std::stop_token& stop) { node_reflector.Step(stop); });
    pod_reflector.Step(thread.get_stop_token());
    thread.join();
  };
  both();
  Row("listed", begin);
  begin = MonotonicNow();
  both();
  Row("every object changed twice, in nothing that is kept", begin);
  const bool whole = node_cache.size() == static_cast<size_t>(nodes) &&
                     pod_cache.size() == static_cast<size_t>(pods) &&
                     pod_cache.generation() == static_cast<uint64_t>(pods);
  if (!whole) std::fprintf(stderr, "the caches do not hold what they should\n");
  return whole ? 0 : 1;
}

}  // namespace
}  // namespace railhead::kube

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 5000;
  const int pods = argc > 2 ? std::atoi(argv[2]) : 20'000;
  return railhead::kube::Run(nodes, pods);
}
