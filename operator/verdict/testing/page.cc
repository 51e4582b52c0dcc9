// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/testing/page.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace railhead::op::verdict::testing {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

class Writer {
 public:
  Writer(const RankReport& rank, std::string* page) : rank_(rank), page_(page) {}

  void Line(const char* name, const Labels& labels, double value) {
    absl::StrAppend(page_, "railhead_", name, "{job=\"", rank_.job, "\",rank=\"", rank_.rank, "\"");
    for (const auto& [label, text] : labels) {
      const std::string escaped =
          absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
      absl::StrAppend(page_, ",", label, "=\"", escaped, "\"");
    }
    absl::StrAppend(page_, "} ", std::isinf(value) ? "+Inf" : absl::StrFormat("%.17g", value),
                    "\n");
  }
  void Bytes(const char* name, const std::optional<double>& bytes) {
    if (bytes.has_value()) Line(name, {}, *bytes);
  }

 private:
  const RankReport& rank_;
  std::string* const page_;
};

}  // namespace

std::string PageOf(const RuntimeReport& report) {
  std::string page = "# HELP railhead_runtime_info Always 1.\n";
  for (const RankReport& rank : report.ranks) {
    Writer writer(rank, &page);
    if (rank.start.has_value()) {
      writer.Line("runtime_info",
                  {{"world_size", absl::StrCat(rank.start->world_size)},
                   {"transport", rank.start->transport},
                   {"requested", rank.start->requested},
                   {"fallback", rank.start->fallback},
                   {"trouble", rank.start->trouble},
                   {"pod", rank.start->pod},
                   {"unauthenticated", rank.start->unauthenticated}},
                  1);
    }
    for (const GivenRail& rail : rank.given) {
      writer.Line("rail_info",
                  {{"rail", absl::StrCat(rail.rail)},
                   {"device", rail.device},
                   {"link_layer", rail.link_layer},
                   {"rate", rail.rate},
                   {"mtu", absl::StrCat(rail.mtu)},
                   {"cause", rail.cause},
                   {"trouble", rail.trouble}},
                  1);
    }
    for (const UsedRail& rail : rank.used) {
      writer.Line("rail_state",
                  {{"rail", absl::StrCat(rail.rail)},
                   {"device", rail.device},
                   {"transport", rail.transport}},
                  rail.up ? 1 : 0);
      const Labels labels = {{"rail", absl::StrCat(rail.rail)},
                             {"device", rail.device},
                             {"transport", rail.transport}};
      writer.Line("rail_peers", labels, rail.peers);
      writer.Line("rail_lost_peers", labels, rail.lost_peers);
    }
    if (!rank.degraded.empty()) writer.Line("degraded", {{"reason", rank.degraded}}, 1);
    writer.Bytes("memlock_limit_bytes", rank.memlock_limit);
    writer.Bytes("memlock_wanted_bytes", rank.memlock_wanted);
    writer.Bytes("memlock_least_bytes", rank.memlock_least);
    writer.Bytes("shared_memory_bytes", rank.shared_memory);
  }
  return page;
}

}  // namespace railhead::op::verdict::testing
