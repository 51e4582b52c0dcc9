// SPDX-License-Identifier: Apache-2.0
#include "cli/plan.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/printable_text.h"
#include "base/yaml/document.h"
#include "cli/output/files.h"
#include "cli/picture.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_reader.h"
#include "placement/decision.h"
#include "placement/placement_json.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/request_reader.h"
#include "placement/solver.h"

namespace railhead::cli {
namespace {

using placement::Decision;
using placement::Placement;
using placement::Reason;

// Returns fabric and request, and with --replay the saved result.
absl::StatusOr<Decision> Load(const PlanOptions& options) {
  if (!options.replay.empty()) {
    const absl::StatusOr<std::string> text = ReadInput(options.replay, YamlDocument::kMaxText);
    if (!text.ok()) return text.status();
    return placement::ParseDecision(*text, options.replay);
  }
  Decision decision;
  const absl::StatusOr<std::string> fabric_text = ReadInput(options.fabric, YamlDocument::kMaxText);
  if (!fabric_text.ok()) return fabric_text.status();
  absl::StatusOr<fabric::FabricModel> model =
      fabric::ParseFabricModel(*fabric_text, options.fabric);
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::string> request_text =
      ReadInput(options.request, YamlDocument::kMaxText);
  if (!request_text.ok()) return request_text.status();
  absl::StatusOr<placement::PlacementRequest> request =
      placement::ParsePlacementRequest(*request_text, options.request, model->levels);
  if (!request.ok()) return request.status();
  decision.fabric = *std::move(model);
  decision.request = *std::move(request);
  return decision;
}

std::vector<std::string> NodeNames(const fabric::FabricModel& model, const Placement& placement) {
  std::vector<std::string> names;
  names.reserve(placement.node_of_rank.size());
  for (const int node : placement.node_of_rank) {
    names.push_back(model.nodes[static_cast<size_t>(node)].name);
  }
  return names;
}

}  // namespace

int RunPlan(const PlanOptions& options, const std::function<double()>& seconds, std::ostream& out,
            std::ostream& err) {
  const auto fail = [&err](const absl::Status& status) {
    err << "railhead plan: " << PrintableText(status.message()) << "\n";
    return kBadInput;
  };
  absl::StatusOr<Decision> decision = Load(options);
  if (!decision.ok()) return fail(decision.status());
  const fabric::FabricModel& model = decision->fabric;
  const double begin = seconds();
  const absl::StatusOr<Placement> placement = placement::Solve(model, decision->request);
  if (!placement.ok()) return fail(placement.status());
  absl::StatusOr<std::vector<Reason>> reasons = std::vector<Reason>{};
  if (!placement->placed) reasons = placement::WhyNotPlaced(model, decision->request);
  if (!reasons.ok()) return fail(reasons.status());
  const double took = seconds() - begin;
  std::optional<AllReducePlan> all_reduce;
  if (placement->placed && !options.all_reduce.sizes.empty()) {
    absl::StatusOr<AllReducePlan> plan =
        PlanAllReduce(model, decision->request, *placement, options.all_reduce);
    if (!plan.ok()) return fail(plan.status());
    all_reduce = *std::move(plan);
  }

  const std::vector<std::string> lines =
      options.explain ? Explain(model, decision->request, *placement) : std::vector<std::string>{};
  if (options.json) {
    nlohmann::ordered_json answer =
        placement::ToJson(model, decision->request, *placement, *reasons);
    answer["solveSeconds"] = took;
    if (options.explain) answer["explanation"] = lines;
    if (all_reduce.has_value()) answer["allReduce"] = ToJson(*all_reduce);
    out << answer.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  } else {
    out << PrintableLines(Picture(model, decision->request, *placement, *reasons));
    if (!lines.empty()) out << "\n";
    for (const std::string& line : lines) out << PrintableText(line) << "\n";
    if (all_reduce.has_value()) out << "\n" << PrintableLines(ToText(*all_reduce));
  }
  out.flush();
  if (!out) return fail(absl::UnavailableError("cannot write the output"));

  const std::vector<std::string> nodes = NodeNames(model, *placement);
  if (!options.replay.empty()) {
    const std::string difference = placement::Difference(*decision, nodes);
    if (!difference.empty()) {
      return fail(absl::FailedPreconditionError(options.replay + ": the result differs from the " +
                                                "saved one: " + difference));
    }
  }
  if (!options.save.empty()) {
    decision->nodes = nodes;
    const absl::Status saved = WriteText(options.save, placement::ToJson(*decision));
    if (!saved.ok()) return fail(saved);
  }
  return placement->placed ? kPlaced : kNotPlaced;
}

}  // namespace railhead::cli
