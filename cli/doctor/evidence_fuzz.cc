// SPDX-License-Identifier: Apache-2.0
//
// Whatever stands in the objects of a cluster, there is a diagnosis, and nothing in its text
// controls a terminal. The input is a list of objects, each read as every kind.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/printable_text.h"
#include "cli/doctor/diagnose.h"
#include "cli/doctor/evidence.h"
#include "cli/doctor/print.h"
#include "kube/json.h"
#include "operator/config/config.h"

namespace railhead::cli::doctor {
namespace {

void Add(const kube::Json& object, Evidence& evidence) {
  for (const char* kind : {"Deployment", "DaemonSet"}) {
    if (auto read = ReadWorkload(object, kind)) evidence.workloads.push_back(*std::move(read));
  }
  if (auto read = ReadComponentPod(object)) evidence.components.push_back(*std::move(read));
  if (auto read = ReadWebhookConfiguration(object)) evidence.webhooks.push_back(*std::move(read));
  evidence.crds.push_back(ReadCrd(object));
  if (auto read = ReadLeader(object)) evidence.leaders.push_back(*std::move(read));
  if (auto read = op::ReadRdmaResources(object)) evidence.rdma = *std::move(read);
  evidence.nodes[kube::StringAt(object, {"metadata", "name"})] = ReadNode(object, evidence.rdma);
  evidence.profiles.push_back(op::ReadStoredProfile(object));
  if (auto read = ReadEvent(object)) evidence.events.push_back(*std::move(read));
  evidence.reports.push_back(ReadReport(object));
  evidence.topology = ReadTopology(object);
  AddPod(object, evidence);
}

void Run(absl::string_view text) {
  const absl::StatusOr<kube::Json> list = kube::ParseJson(text);
  if (!list.ok() || !list->is_array() || list->size() > 64) return;
  Evidence evidence;
  evidence.now = absl::FromUnixSeconds(1'800'000'000);
  for (const kube::Json& object : *list) Add(object, evidence);
  for (const Scope& scope :
       {Scope{}, Scope{Scope::Kind::kNode, "", "n0"}, Scope{Scope::Kind::kJob, "team", "train"}}) {
    const absl::StatusOr<Evidence> narrow = Narrow(evidence, scope);
    if (!narrow.ok()) continue;
    const std::string shown = Text(Diagnose(*narrow, scope), false);
    if (PrintableLines(shown) != shown) std::abort();
    JsonText(Diagnose(*narrow, scope), scope);
  }
}

}  // namespace
}  // namespace railhead::cli::doctor

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::cli::doctor::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
