// SPDX-License-Identifier: Apache-2.0
#include "cli/why.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/printable_text.h"
#include "base/yaml/document.h"
#include "cli/access/cluster.h"
#include "cli/output/files.h"
#include "cli/plan.h"
#include "kube/elements.h"
#include "kube/json.h"
#include "operator/gangs/why.h"
#include "placement/decision.h"
#include "placement/placement_json.h"
#include "placement/reasons.h"

namespace railhead::cli {
namespace {

using op::gangs::ClusterObjects;
using op::gangs::WhyAnswer;
using OrderedJson = nlohmann::ordered_json;
using placement::Reason;

constexpr size_t kMostText = size_t{1} << 30U;  // of one file

absl::StatusOr<ClusterObjects> FromFiles(const std::vector<std::string>& files) {
  ClusterObjects objects;
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = ReadInput(file, kMostText);
    if (!text.ok()) return text.status();
    absl::StatusOr<kube::Json> document = kube::ParseJson(*text);
    if (!document.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": ", document.status().message()));
    }
    op::gangs::Collect(*std::move(document), objects);
  }
  if (objects.nodes.empty() || objects.pods.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.front(), files.size() > 1 ? " and the others have" : " has", " no ",
                     objects.nodes.empty() ? "nodes" : "pods",
                     "; give the output of `kubectl get nodes,pods,events -A -o json`"));
  }
  return objects;
}

// Solves a saved request again; ignores the saved result.
absl::StatusOr<WhyAnswer> OfDecision(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadInput(file, YamlDocument::kMaxText);
  if (!text.ok()) return text.status();
  const absl::StatusOr<placement::Decision> decision = placement::ParseDecision(*text, file);
  if (!decision.ok()) return decision.status();
  WhyAnswer answer;
  answer.name = decision->request.name;
  answer.kind = "Decision";
  answer.pods = static_cast<size_t>(decision->request.pods);
  absl::StatusOr<std::vector<Reason>> reasons =
      placement::WhyNotPlaced(decision->fabric, decision->request);
  if (!reasons.ok()) return reasons.status();
  answer.reasons = *std::move(reasons);
  answer.state = answer.reasons.empty() ? "placed" : "waiting";
  return answer;
}

// Returns the time of the cluster's state in these objects. Files do not contain it, so it is the
// time of their last change, which kubelets make every few minutes.
absl::Time TimeOfFiles(const ClusterObjects& objects, absl::Time now) {
  absl::Time latest = absl::InfinitePast();
  const auto see = [&latest](const std::string& text) {
    absl::Time time;
    if (absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) latest = std::max(latest, time);
  };
  for (const auto* list : {&objects.nodes, &objects.pods}) {
    for (const kube::Json& object : *list) {
      see(kube::StringAt(object, {"metadata", "creationTimestamp"}));
      for (const kube::Json& condition : kube::ElementsAt(object, {"status", "conditions"})) {
        see(kube::StringAt(condition, {"lastHeartbeatTime"}));
        see(kube::StringAt(condition, {"lastTransitionTime"}));
      }
    }
  }
  for (const kube::Json& event : objects.events) see(kube::StringAt(event, {"lastTimestamp"}));
  return latest == absl::InfinitePast() ? now : std::min(now, latest);
}

OrderedJson ToJson(const WhyAnswer& answer) {
  OrderedJson json = {{"namespace", answer.space}, {"name", answer.name},
                      {"kind", answer.kind},       {"state", answer.state},
                      {"pods", answer.pods},       {"gated", answer.gated},
                      {"bound", answer.bound},     {"message", answer.message}};
  json["reasons"] = OrderedJson::array();
  for (const Reason& reason : answer.reasons) json["reasons"].push_back(placement::ToJson(reason));
  json["notes"] = answer.notes;
  json["scheduler"] = OrderedJson::array();
  for (const auto& [message, pods] : answer.scheduler) {
    json["scheduler"].push_back({{"pods", pods}, {"message", message}});
  }
  json["events"] = OrderedJson::array();
  for (const auto& [reason, message] : answer.told) {
    json["events"].push_back({{"reason", reason}, {"message", message}});
  }
  return json;
}

// Escapes texts that users and other components wrote, so that each stays on its line.
void MakePrintable(WhyAnswer& answer) {
  for (std::string* text : {&answer.space, &answer.name, &answer.message}) {
    *text = PrintableText(*text);
  }
  for (Reason& reason : answer.reasons) reason.message = PrintableText(reason.message);
  for (std::string& note : answer.notes) note = PrintableText(note);
  for (auto& [message, pods] : answer.scheduler) message = PrintableText(message);
  for (auto& [reason, message] : answer.told) {
    reason = PrintableText(reason);
    message = PrintableText(message);
  }
}

void Print(const WhyAnswer& answer, std::ostream& out) {
  out << answer.kind << " " << answer.space << (answer.space.empty() ? "" : "/") << answer.name
      << ": " << answer.state << ", " << answer.pods << (answer.pods == 1 ? " pod" : " pods");
  if (answer.kind != "Decision") {
    out << ", " << answer.bound << " on a node, " << answer.gated << " gated";
  }
  out << "\n";
  const auto print = [&](Reason::Kind kind, const char* title) {
    bool first = true;
    for (const Reason& reason : answer.reasons) {
      if (reason.kind != kind) continue;
      if (first) out << title << "\n";
      first = false;
      out << "  " << reason.message << "\n";
    }
  };
  if (answer.reasons.empty()) {
    if (!answer.message.empty()) out << "  " << answer.message << "\n";
  } else {
    for (const std::string& note : answer.notes) out << "  " << note << "\n";
  }
  print(Reason::Kind::kRoom, "room:");
  print(Reason::Kind::kChange, "any of these changes would help:");
  print(Reason::Kind::kExcluded, "excluded nodes:");
  if (!answer.scheduler.empty()) out << "scheduler messages:\n";
  for (const auto& [message, pods] : answer.scheduler) {
    out << "  " << pods << (pods == 1 ? " pod: " : " pods: ") << message << "\n";
  }
  if (!answer.told.empty()) out << "events:\n";
  for (const auto& [reason, message] : answer.told) {
    out << "  " << reason << ": " << message << "\n";
  }
}

absl::StatusOr<WhyAnswer> Answer(const WhyOptions& options, kube::Api* api,
                                 const std::function<absl::Time()>& now) {
  if (!options.decision.empty()) return OfDecision(options.decision);
  const absl::StatusOr<ClusterObjects> objects =
      options.files.empty() ? AskCluster(*api) : FromFiles(options.files);
  if (!objects.ok()) return objects.status();
  return op::gangs::Why(*objects, options.space, options.job,
                        options.files.empty() ? now() : TimeOfFiles(*objects, now()));
}

}  // namespace

int RunWhy(const WhyOptions& options, kube::Api* api, const std::function<absl::Time()>& now,
           std::ostream& out, std::ostream& err) {
  absl::StatusOr<WhyAnswer> answer = Answer(options, api, now);
  if (!answer.ok()) {
    err << "railhead why: " << PrintableText(answer.status().message()) << "\n";
    return kBadInput;
  }
  if (options.json) {
    out << ToJson(*answer).dump(2, ' ', true, OrderedJson::error_handler_t::replace) << "\n";
  } else {
    MakePrintable(*answer);
    Print(*answer, out);
  }
  out.flush();
  if (!out) {
    err << "railhead why: cannot write the output\n";
    return kBadInput;
  }
  return answer->pending() ? kPending : kRuns;
}

}  // namespace railhead::cli
