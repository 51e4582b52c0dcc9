// SPDX-License-Identifier: Apache-2.0
#include "cli/rails.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/printable_text.h"
#include "cli/access/prometheus.h"
#include "cli/plan.h"
#include "fabric/inventory.h"

namespace railhead::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kMostJobs = 100;  // of a table; JSON has all
constexpr char kNoSeries[] =
    "no job sends: Prometheus has no matching series railhead_rail_transmit_bytes_total. If a job "
    "runs, check that Prometheus scrapes its pods (docs/runbooks/RailheadPageNotScraped.md)";

struct RailRate {
  double bytes_per_second = 0;
  int64_t lost_ranks = 0;  // that have lost it
};

// By namespace and name, then by rail.
using Jobs = std::map<std::pair<std::string, std::string>, std::map<int, RailRate>>;

std::string Selector(const RailsOptions& options) {
  std::vector<std::string> matchers = {R"(transport!="shm")"};  // shared memory is not a rail
  if (!options.space.empty()) {
    matchers.push_back(absl::StrCat("namespace=", QuotedLabel(options.space)));
  }
  if (!options.job.empty()) matchers.push_back(absl::StrCat("job=", QuotedLabel(options.job)));
  return absl::StrCat("{", absl::StrJoin(matchers, ","), "}");
}

absl::StatusOr<std::vector<PrometheusSample>> Query(const AskQuery& ask, const std::string& query) {
  const absl::StatusOr<std::string> answer = ask(query);
  if (!answer.ok()) return answer.status();
  return ParsePrometheusAnswer(*answer);
}

std::string LabelOf(const PrometheusSample& sample, const char* label) {
  const auto found = sample.labels.find(label);
  return found == sample.labels.end() ? "" : found->second;
}

// Returns null for a series without a valid rail.
RailRate* RailOf(const PrometheusSample& sample, Jobs& jobs) {
  int rail = 0;
  if (!absl::SimpleAtoi(LabelOf(sample, "rail"), &rail) || rail < 0 ||
      rail > fabric::kHighestRail) {
    return nullptr;
  }
  return &jobs[{LabelOf(sample, "namespace"), LabelOf(sample, "job")}][rail];
}

// Returns the sample's value as a number of ranks; a response can contain any number, or none.
int64_t CountIn(const PrometheusSample& sample) {
  constexpr double kMost = 1e9;
  if (!(sample.value > 0)) return 0;
  return static_cast<int64_t>(std::min(sample.value, kMost));
}

absl::StatusOr<Jobs> AskForJobs(const RailsOptions& options, const AskQuery& ask) {
  const std::string selector = Selector(options);
  const auto rates = Query(
      ask, absl::StrCat("sum by (namespace, job, rail) (rate(railhead_rail_transmit_bytes_total",
                        selector, "[", options.window, "]))"));
  if (!rates.ok()) return rates.status();
  const auto lost = Query(ask, absl::StrCat("count by (namespace, job, rail) (railhead_rail_state",
                                            selector, " == 0)"));
  if (!lost.ok()) return lost.status();
  Jobs jobs;
  for (const PrometheusSample& sample : *rates) {
    if (RailRate* rail = RailOf(sample, jobs)) rail->bytes_per_second = sample.value;
  }
  for (const PrometheusSample& sample : *lost) {
    if (RailRate* rail = RailOf(sample, jobs)) {
      rail->lost_ranks = CountIn(sample);
    }
  }
  return jobs;
}

double TotalOf(const std::map<int, RailRate>& rails) {
  double total = 0;
  for (const auto& [rail, rate] : rails) total += rate.bytes_per_second;
  return total;
}

bool AnyLost(const Jobs& jobs) {
  for (const auto& [name, rails] : jobs) {
    for (const auto& [rail, rate] : rails) {
      if (rate.lost_ranks > 0) return true;
    }
  }
  return false;
}

// Columns of one width, the first two to the left and the others to the right.
std::string Aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&text, i == 0 ? "" : "  ", i < 2 ? "" : space, row[i], i < 2 ? space : "");
    }
    text += '\n';
  }
  return text;
}

std::string Table(const RailsOptions& options, const Jobs& jobs) {
  if (jobs.empty()) return absl::StrCat(kNoSeries, "\n");
  std::set<int> columns;
  for (const auto& [name, rails] : jobs) {
    for (const auto& [rail, rate] : rails) columns.insert(rail);
  }
  std::vector<std::vector<std::string>> rows = {{"NAMESPACE", "JOB"}};
  for (const int rail : columns) rows[0].push_back(absl::StrCat("RAIL ", rail));
  rows[0].emplace_back("ALL");
  for (const auto& [name, rails] : jobs) {
    if (rows.size() > kMostJobs) break;
    std::vector<std::string> row = {PrintableText(name.first), PrintableText(name.second)};
    for (const int rail : columns) {
      const auto found = rails.find(rail);
      row.push_back(found == rails.end()
                        ? "-"
                        : absl::StrFormat("%.2f%s", found->second.bytes_per_second / 1e9,
                                          found->second.lost_ranks > 0 ? "x" : ""));
    }
    row.push_back(absl::StrFormat("%.2f", TotalOf(rails) / 1e9));
    rows.push_back(std::move(row));
  }
  std::string text = Aligned(rows);
  if (jobs.size() > kMostJobs) {
    absl::StrAppend(&text, "and ", jobs.size() - kMostJobs,
                    " more jobs; select with -n and --job\n");
  }
  absl::StrAppend(
      &text, "GB/s that all ranks of a job send, over ", options.window,
      AnyLost(jobs) ? "; x: a rank has lost this rail (railhead doctor job NAMESPACE/JOB)" : "",
      "\n");
  return text;
}

OrderedJson ToJson(const RailsOptions& options, const Jobs& jobs) {
  OrderedJson json = {{"window", options.window}, {"jobs", OrderedJson::array()}};
  for (const auto& [name, rails] : jobs) {
    OrderedJson of_rails = OrderedJson::array();
    for (const auto& [rail, rate] : rails) {
      of_rails.push_back({{"rail", rail},
                          {"bytesPerSecond", rate.bytes_per_second},
                          {"lostRanks", rate.lost_ranks}});
    }
    json["jobs"].push_back({{"namespace", name.first},
                            {"job", name.second},
                            {"bytesPerSecond", TotalOf(rails)},
                            {"rails", std::move(of_rails)}});
  }
  return json;
}

}  // namespace

absl::Status CheckRailsOptions(const RailsOptions& options) {
  if (absl::Status url = CheckPrometheusUrl(options.prometheus); !url.ok()) return url;
  // Prometheus knows other units too, and no fractions.
  int64_t number = 0;
  const std::string& window = options.window;
  if (window.size() < 2 || !absl::SimpleAtoi(window.substr(0, window.size() - 1), &number) ||
      number < 1 || number > 100000 ||
      std::string("smh").find(window.back()) == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--window ", window,
        ": give a whole number with s, m or h, such as 1m; it should span at least two scrapes"));
  }
  absl::Time time;
  std::string error;
  if (!options.at.empty() && !absl::ParseTime(absl::RFC3339_full, options.at, &time, &error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--at ", options.at, ": give a time such as 2026-01-15T12:00:00Z"));
  }
  if (options.watch && !options.at.empty()) {
    return absl::InvalidArgumentError("--at excludes --watch: past values do not change");
  }
  return absl::OkStatus();
}

int RunRails(const RailsOptions& options, const AskQuery& ask, const std::function<bool()>& wait,
             std::ostream& out, std::ostream& err) {
  int status = kRailsShown;
  do {
    const absl::StatusOr<Jobs> jobs = AskForJobs(options, ask);
    if (options.clears) out << "\x1b[H\x1b[2J";
    if (!jobs.ok()) {
      status = kBadInput;
      (options.clears ? out : err)
          << "railhead rails: " << PrintableText(jobs.status().message()) << "\n";
    } else {
      status = jobs->empty() || AnyLost(*jobs) ? kRailsLost : kRailsShown;
      if (options.json) {
        out << ToJson(options, *jobs)
                   .dump(options.watch ? -1 : 2, ' ', true, OrderedJson::error_handler_t::replace)
            << "\n";
      } else {
        out << Table(options, *jobs);
      }
    }
    out.flush();
    if (!out) {
      err << "railhead rails: cannot write the output\n";
      return kBadInput;
    }
  } while (options.watch && wait());
  return status;
}

}  // namespace railhead::cli
