// SPDX-License-Identifier: Apache-2.0
#include "operator/topology/foreign_objects.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kube/elements.h"
#include "kube/json.h"
#include "placement/topology/place_value.h"

namespace railhead::topology {
namespace {

constexpr char kKueue[] = "kueue.x-k8s.io/v1beta2";
constexpr char kKai[] = "kai.scheduler/v1alpha1";
constexpr char kVolcano[] = "topology.volcano.sh/v1alpha1";
constexpr char kTopologies[] = "topologies";
constexpr char kHyperNodes[] = "hypernodes";
constexpr absl::Duration kResync = absl::Minutes(10);

}  // namespace

ForeignObjects::ForeignObjects(kube::Api* api, std::function<bool()> leads)
    : api_(api), leads_(std::move(leads)) {}

void ForeignObjects::Forget() {
  kinds_.clear();
  applied_.clear();
}

absl::Status ForeignObjects::Write(const fabric::FabricModel& model, const PlaceLabels* labels,
                                   absl::Time now) {
  absl::Status trouble;
  if (labels != nullptr) {
    trouble.Update(WriteTopology(kKueue, KueueTopology(model, *labels), now));
    trouble.Update(WriteTopology(kKai, KaiTopology(model, *labels), now));
  }
  trouble.Update(WriteHyperNodes(model, now));
  return trouble;
}

absl::StatusOr<bool> ForeignObjects::Known(const std::string& api, const std::string& resource,
                                           absl::Time now) {
  Kind& kind = kinds_[absl::StrCat(api, "/", resource)];
  if (now - kind.at < kResync) return kind.known;
  kube::ApiRequest request;
  request.method = "GET";
  request.path = absl::StrCat("/apis/", api);
  request.subject = absl::StrCat("the kinds of ", api);
  const absl::StatusOr<kube::Json> answer = api_->Call(request);
  if (!answer.ok() && !absl::IsNotFound(answer.status())) return answer.status();
  kind = {false, now};
  if (!answer.ok()) return false;
  for (const kube::Json& item : kube::ElementsAt(*answer, {"resources"})) {
    kind.known = kind.known || kube::StringAt(item, {"name"}) == resource;
  }
  return kind.known;
}

absl::Status ForeignObjects::Apply(const kube::ObjectRef& ref, const OrderedJson& object,
                                   absl::Time now) {
  std::string text = object.dump();
  Applied& applied = applied_[ref.ToString()];
  if (applied.text == text && now - applied.at < kResync) return absl::OkStatus();
  if (!leads_()) return absl::CancelledError("this replica lost leadership");
  absl::Status done = kube::Apply(*api_, ref, kManager, kube::Json(object)).status();
  if (done.ok()) applied = {std::move(text), now};
  return done;
}

absl::Status ForeignObjects::WriteTopology(const std::string& api, const OrderedJson& object,
                                           absl::Time now) {
  const absl::StatusOr<bool> known = Known(api, kTopologies, now);
  if (!known.ok() || !*known) return known.status();
  const std::string name = object["metadata"]["name"];
  absl::Status done = Apply({api, kTopologies, "", name}, object, now);
  if (!absl::IsInvalidArgument(done)) return done;
  return absl::InvalidArgumentError(
      absl::StrCat(done.message(), "; the levels of a Topology cannot be changed: delete Topology ",
                   name, " of ", api, " when nothing refers to it; the operator recreates it"));
}

absl::Status ForeignObjects::WriteHyperNodes(const fabric::FabricModel& model, absl::Time now) {
  const absl::StatusOr<bool> known = Known(kVolcano, kHyperNodes, now);
  if (!known.ok() || !*known) return known.status();
  std::set<std::string> names;
  const OrderedJson list = VolcanoHyperNodes(model);
  for (const OrderedJson& item : list["items"]) {
    const std::string name = item["metadata"]["name"];
    names.insert(name);
    absl::Status done = Apply({kVolcano, kHyperNodes, "", name}, item, now);
    if (!done.ok()) return done;
  }
  const std::string own = ObjectName(model.name);
  std::vector<kube::Json> left;
  absl::Status listed =
      kube::ForEach(*api_, {kVolcano, kHyperNodes, "", ""}, [&](const kube::Json& item) {
        const bool ours = kube::StringAt(item, {"metadata", "labels", kOfTopology}) == own;
        if (ours && names.count(kube::StringAt(item, {"metadata", "name"})) == 0) {
          left.push_back(item);
        }
        return absl::OkStatus();
      });
  if (!listed.ok()) return listed;
  for (const kube::Json& item : left) {
    if (!leads_()) return absl::CancelledError("this replica lost leadership");
    const std::string name = kube::StringAt(item, {"metadata", "name"});
    const kube::ObjectRef ref = {kVolcano, kHyperNodes, "", name};
    applied_.erase(ref.ToString());
    absl::Status deleted = kube::Delete(*api_, ref, kube::StringAt(item, {"metadata", "uid"}),
                                        kube::StringAt(item, {"metadata", "resourceVersion"}));
    if (!deleted.ok() && !absl::IsNotFound(deleted) && !absl::IsAborted(deleted)) return deleted;
  }
  return absl::OkStatus();
}

}  // namespace railhead::topology
