// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/report.h"

#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace railhead::perf {
namespace {

using Json_ = nlohmann::ordered_json;

std::string WrongText(const Timing& timing) {
  return timing.wrong.has_value() ? absl::StrCat(*timing.wrong) : "-";
}

std::string TimingText(const Report& report, uint64_t bytes, const Timing& timing) {
  return absl::StrFormat(" %12.1f %11.6f %11.6f %7s", timing.seconds * 1e6,
                         AlgorithmBandwidth(bytes, timing), BusBandwidth(report, bytes, timing),
                         WrongText(timing));
}

// The columns of a collective that is not done in place.
std::string NoTimingText() { return absl::StrFormat(" %12s %11s %11s %7s", "-", "-", "-", "N/A"); }

// The columns that identify a row.
std::string KeyText(const Report& report, const Row& row) {
  const std::string root =
      report.collective->has_root ? absl::StrFormat(" %6d", report.root) : std::string();
  return absl::StrFormat("%12d %12d %8s %6s%s", row.bytes, row.count, row.type, row.redop, root);
}

void AddTiming(const Report& report, uint64_t bytes, const Timing& timing, Json_& to) {
  to["time_us"] = timing.seconds * 1e6;
  to["algbw_gbps"] = AlgorithmBandwidth(bytes, timing);
  to["busbw_gbps"] = BusBandwidth(report, bytes, timing);
  to["wrong"] = timing.wrong.has_value() ? Json_(*timing.wrong) : Json_(nullptr);
}

std::string VerifiedText(const Report& report) {
  if (!report.collective->has_data()) return "there is nothing to check";
  const std::optional<bool> verified = Verified(report);
  if (!verified.has_value()) return "not checked (--check)";
  return *verified ? "yes" : "no";
}

}  // namespace

double AlgorithmBandwidth(uint64_t bytes, const Timing& timing) {
  return timing.seconds > 0 ? static_cast<double>(bytes) / timing.seconds * 1e-9 : 0;
}

double BusBandwidth(const Report& report, uint64_t bytes, const Timing& timing) {
  return AlgorithmBandwidth(bytes, timing) * report.collective->bus_factor(report.ranks);
}

std::optional<bool> Verified(const Report& report) {
  std::optional<bool> verified;
  for (const Row& row : report.rows) {
    for (const Timing& timing : {row.out_of_place, row.in_place.value_or(Timing())}) {
      if (timing.wrong.has_value()) verified = verified.value_or(true) && *timing.wrong == 0;
    }
  }
  return verified;
}

std::string TableHead(const Report& report) {
  std::string text = absl::StrFormat(
      "# railhead-perf %s: %d rank(s), %d iterations after %d to warm up, over %s\n",
      report.collective->name, report.ranks, report.iterations, report.warmup, report.transport);
  if (!report.degraded_reason.empty()) {
    absl::StrAppend(&text, "# degraded: ", report.degraded_reason, "\n");
  }
  // A line of the head: what stands over the key's columns, and twice over those of a timing.
  const auto line = [&](std::array<const char*, 5> key, std::array<const char*, 4> timing) {
    absl::StrAppend(&text, absl::StrFormat("#%11s %12s %8s %6s", key[0], key[1], key[2], key[3]));
    if (report.collective->has_root) absl::StrAppend(&text, absl::StrFormat(" %6s", key[4]));
    for (int i = 0; i < 2; ++i) {
      absl::StrAppend(&text, absl::StrFormat(" %12s %11s %11s %7s", timing[0], timing[1], timing[2],
                                             timing[3]));
    }
    absl::StrAppend(&text, "\n");
  };
  const char* const gap = report.collective->has_root ? "       " : "";
  absl::StrAppend(&text,
                  absl::StrFormat("#\n#%11s %12s %8s %6s%s %44s %44s\n", "", "", "", "", gap,
                                  "out-of-place               ", "in-place                 "));
  line({"size", "count", "type", "redop", "root"}, {"time", "algbw", "busbw", "#wrong"});
  line({"(B)", "(elements)", "", "", ""}, {"(us)", "(GB/s)", "(GB/s)", ""});
  return text;
}

std::string TableRow(const Report& report, const Row& row) {
  return absl::StrCat(
      KeyText(report, row), TimingText(report, row.bytes, row.out_of_place),
      row.in_place.has_value() ? TimingText(report, row.bytes, *row.in_place) : NoTimingText(),
      "\n");
}

std::string TableFoot(const Report& report) {
  std::string text = absl::StrCat(
      "#\n# transport: ", report.transport,
      "\n# degraded: ", report.degraded_reason.empty() ? "no" : report.degraded_reason, "\n");
  for (const RailUse& rail : report.rails) {
    absl::StrAppend(&text, "# rail ", rail.rail, ": ", rail.device,
                    rail.port > 0 ? absl::StrCat(" port ", rail.port) : "", ", ", rail.transport,
                    ", sent ", rail.tx_bytes, " B, received ", rail.rx_bytes, " B\n");
  }
  return absl::StrCat(text, "# verified: ", VerifiedText(report), "\n");
}

std::string Json(const Report& report) {
  Json_ root;
  root["collective"] = report.collective->name;
  root["type"] = report.type;
  root["redop"] = report.redop;
  root["root"] = report.collective->has_root ? Json_(report.root) : Json_(nullptr);
  root["ranks"] = report.ranks;
  root["iterations"] = report.iterations;
  root["warmup"] = report.warmup;
  root["units"] = {{"time_us", "microseconds"},
                   {"algbw_gbps", "GB/s, 10^9 bytes per second"},
                   {"busbw_gbps", "GB/s, 10^9 bytes per second"}};
  root["transport"] = report.transport;
  root["degraded"] = !report.degraded_reason.empty();
  root["degraded_reason"] = report.degraded_reason;
  root["rails"] = Json_::array();
  for (const RailUse& rail : report.rails) {
    root["rails"].push_back({{"rail", rail.rail},
                             {"device", rail.device},
                             {"port", rail.port},
                             {"transport", rail.transport},
                             {"tx_bytes", rail.tx_bytes},
                             {"rx_bytes", rail.rx_bytes}});
  }
  root["results"] = Json_::array();
  for (const Row& row : report.rows) {
    Json_ entry;
    entry["bytes"] = row.bytes;
    entry["count"] = row.count;
    entry["type"] = row.type;
    entry["redop"] = row.redop;
    AddTiming(report, row.bytes, row.out_of_place, entry);
    entry["in_place"] = nullptr;
    if (row.in_place.has_value()) AddTiming(report, row.bytes, *row.in_place, entry["in_place"]);
    root["results"].push_back(std::move(entry));
  }
  const std::optional<bool> verified = Verified(report);
  root["verified"] = verified.has_value() ? Json_(*verified) : Json_(nullptr);
  // Texts come from other machines; what is not UTF-8 in them is replaced, not thrown at.
  return root.dump(2, ' ', false, Json_::error_handler_t::replace) + "\n";
}

}  // namespace railhead::perf
