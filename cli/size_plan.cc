// SPDX-License-Identifier: Apache-2.0
#include "cli/size_plan.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/printable_text.h"
#include "base/yaml/document.h"
#include "cli/output/files.h"
#include "cli/output/words.h"
#include "cli/picture.h"
#include "cli/plan.h"
#include "fabric/model/fabric_model.h"
#include "fabric/model/model_reader.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/solver.h"

namespace railhead::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Request of the sizing to a fabric, and the result.
struct Placed {
  placement::PlacementRequest request;
  placement::Placement placement;
  std::vector<placement::Reason> reasons;
};

absl::StatusOr<double> ReadWithin(const std::string& text) {
  absl::Duration within;
  if (!absl::ParseDuration(text, &within) || within <= absl::ZeroDuration() ||
      within > absl::Hours(1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--within ", text, ": give the time of an all-reduce, up to 1h, such as 200ms or 1.5s"));
  }
  return absl::ToDoubleSeconds(within);
}

int MostGpus(const fabric::FabricModel& model) {
  int most = 0;
  for (const fabric::FabricNode& node : model.nodes) most = std::max(most, node.gpus);
  return most;
}

// Nodes that are free as a whole, with all rails.
int FreeNodes(const fabric::FabricModel& model, int rails) {
  const int gpus = MostGpus(model);
  return static_cast<int>(
      std::count_if(model.nodes.begin(), model.nodes.end(), [&](const fabric::FabricNode& node) {
        return node.unschedulable.empty() && node.gpus - node.used_gpus >= gpus &&
               node.used_hcas == 0 && node.hcas - static_cast<int>(node.dead_rails.size()) >= rails;
      }));
}

absl::StatusOr<fabric::FabricModel> LoadFabric(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadInput(file, YamlDocument::kMaxText);
  if (!text.ok()) return text.status();
  return fabric::ParseFabricModel(*text, file);
}

absl::StatusOr<SizingRequest> RequestOf(const SizePlanOptions& options,
                                        const std::optional<fabric::FabricModel>& model) {
  SizingRequest request;
  const absl::StatusOr<double> parameters = ParseParameters(options.parameters);
  if (!parameters.ok()) return parameters.status();
  const absl::StatusOr<double> within = ReadWithin(options.within);
  if (!within.ok()) return within.status();
  request.parameters = *parameters;
  request.seconds = *within;
  request.bytes_each = options.bytes_each;
  request.efficiency = options.efficiency;
  request.replicas = options.replicas;
  request.nodes = options.nodes;
  if (model.has_value()) {
    request.rails = model->rails;
    const auto rate = model->link_gbps.find("node");
    if (rate != model->link_gbps.end()) request.rail_gbps = rate->second;
  }
  if (options.rails.has_value()) request.rails = *options.rails;
  if (options.rate.has_value()) request.rail_gbps = *options.rate;
  if (model.has_value() && !request.replicas.has_value() && !request.nodes.has_value()) {
    const int free = FreeNodes(*model, request.rails);
    if (free == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("no node of fabric ", model->name, " is free with ",
                       Counted(request.rails, "rail"), "; give fewer --rails, or --nodes"));
    }
    request.nodes = free;
  }
  return request;
}

absl::StatusOr<Placed> Place(const fabric::FabricModel& model, const Sizing& sizing) {
  Placed placed;
  placed.request.name = "sizing";
  placed.request.pods = *sizing.nodes;
  placed.request.gpus_per_pod = MostGpus(model);
  placed.request.hcas_per_pod = sizing.rails_per_node;
  placed.request.same_rails = true;
  absl::StatusOr<placement::Placement> placement = placement::Solve(model, placed.request);
  if (!placement.ok()) return placement.status();
  placed.placement = *std::move(placement);
  if (placed.placement.placed) return placed;
  absl::StatusOr<std::vector<placement::Reason>> reasons =
      placement::WhyNotPlaced(model, placed.request);
  if (!reasons.ok()) return reasons.status();
  placed.reasons = *std::move(reasons);
  return placed;
}

std::string Gigabytes(double bytes) { return absl::StrFormat("%.4g GB", bytes / 1e9); }

std::string Formula(const SizingRequest& request, const Sizing& sizing) {
  const std::string many = sizing.replicas.has_value()
                               ? absl::StrCat("n = ", Counted(*sizing.replicas, "replica"))
                               : std::string("n = any number of replicas, so at most 2");
  const std::string within = absl::FormatDuration(absl::Seconds(request.seconds));
  std::string text = absl::StrFormat(
      "gradients  %.4g parameters x %.4g bytes = %s\n"
      "traffic    2(n-1)/n x %s = %s of each replica, %s\n"
      "needed     %s / %s = %s/s of each replica\n"
      "a node     %d x %.4g Gb/s / 8 x %.4g = %s/s\n"
      "so         %s for each replica",
      request.parameters, request.bytes_each, Gigabytes(sizing.gradient_bytes),
      Gigabytes(sizing.gradient_bytes), Gigabytes(sizing.traffic_bytes), many,
      Gigabytes(sizing.traffic_bytes), within, Gigabytes(sizing.needed_bytes_per_second),
      request.rails, request.rail_gbps, request.efficiency, Gigabytes(sizing.node_bytes_per_second),
      Counted(sizing.nodes_per_replica, "node"));
  if (sizing.nodes.has_value()) absl::StrAppend(&text, ", ", *sizing.nodes, " in all");
  absl::StrAppend(&text, "; ", sizing.rails_per_node, " of ", Counted(request.rails, "rail"),
                  sizing.rails_per_node == 1 ? " suffices" : " suffice", ", all take ",
                  absl::StrFormat("%.4g ms", sizing.seconds * 1e3), "\n");
  return text;
}

OrderedJson ToJson(const SizingRequest& request, const Sizing& sizing) {
  OrderedJson json = {{"fits", sizing.fits},
                      {"parameters", request.parameters},
                      {"bytesEach", request.bytes_each},
                      {"gradientBytes", sizing.gradient_bytes},
                      {"factor", sizing.factor},
                      {"trafficBytes", sizing.traffic_bytes},
                      {"withinSeconds", request.seconds},
                      {"neededBytesPerSecond", sizing.needed_bytes_per_second},
                      {"rails", request.rails},
                      {"railGbps", request.rail_gbps},
                      {"efficiency", request.efficiency},
                      {"nodeBytesPerSecond", sizing.node_bytes_per_second},
                      {"nodesPerReplica", sizing.nodes_per_replica},
                      {"railsPerNode", sizing.rails_per_node},
                      {"seconds", sizing.seconds}};
  if (sizing.replicas.has_value()) json["replicas"] = *sizing.replicas;
  if (sizing.nodes.has_value()) json["nodes"] = *sizing.nodes;
  return json;
}

}  // namespace

int RunSizePlan(const SizePlanOptions& options, std::ostream& out, std::ostream& err) {
  const auto fail = [&err](const absl::Status& status) {
    err << "railhead plan: " << PrintableText(status.message()) << "\n";
    return absl::IsFailedPrecondition(status) ? kNotPlaced : kBadInput;
  };
  std::optional<fabric::FabricModel> model;
  if (!options.fabric.empty()) {
    absl::StatusOr<fabric::FabricModel> loaded = LoadFabric(options.fabric);
    if (!loaded.ok()) return fail(loaded.status());
    model = *std::move(loaded);
  }
  const absl::StatusOr<SizingRequest> request = RequestOf(options, model);
  if (!request.ok()) return fail(request.status());
  const Sizing sizing = Size(*request);
  std::optional<Placed> placed;
  if (model.has_value() && sizing.fits && sizing.nodes.has_value()) {
    absl::StatusOr<Placed> answer = Place(*model, sizing);
    if (!answer.ok()) return fail(answer.status());
    placed = *std::move(answer);
  }
  const bool fits = sizing.fits && (!placed.has_value() || placed->placement.placed);
  if (options.json) {
    OrderedJson json = ToJson(*request, sizing);
    json["fits"] = fits;
    json["formula"] = "2(n-1)/n x parameters x bytesEach / withinSeconds";
    json["assignment"] = OrderedJson::array();
    if (placed.has_value()) {
      for (const int node : placed->placement.node_of_rank) {
        json["assignment"].push_back(model->nodes[static_cast<size_t>(node)].name);
      }
    }
    out << json.dump(2, ' ', true, OrderedJson::error_handler_t::replace) << "\n";
  } else {
    out << Formula(*request, sizing);
    if (!sizing.fits) {
      out << "does not fit: "
          << (request->nodes.has_value() ? absl::StrCat("two replicas need ", *sizing.nodes,
                                                        " nodes, and there are ", *request->nodes)
                                         : std::string("this needs a billion nodes or more"))
          << "; allow more time, or add rails or nodes\n";
    }
    if (placed.has_value()) {
      out << "\n"
          << PrintableLines(Picture(*model, placed->request, placed->placement, placed->reasons));
    }
  }
  out.flush();
  if (!out) return fail(absl::UnavailableError("cannot write the output"));
  return fits ? kPlaced : kNotPlaced;
}

}  // namespace railhead::cli
