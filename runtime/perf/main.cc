// SPDX-License-Identifier: Apache-2.0
//
// railhead-perf: measures collectives between the ranks of a job.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/config/env.h"
#include "runtime/perf/collectives.h"
#include "runtime/perf/explain.h"
#include "runtime/perf/preflight.h"
#include "runtime/perf/report.h"
#include "runtime/perf/runner.h"
#include "runtime/perf/sizes.h"
#include "runtime/perf/types.h"

namespace railhead::perf {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

constexpr const char* kAbout =
    "Measures collectives between the ranks of a job. Start one process for each rank, with RANK, "
    "WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment (the Railhead operator sets them "
    "in pods that request rdma/hca); rank 0 prints.\n"
    "Try it on one machine:\n"
    "  for r in 0 1; do RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \\\n"
    "    railhead-perf all_reduce -b 8 -e 8M -f 4 --check & done; wait\n"
    "Columns are those of nccl-tests: size and count of the data; time of one operation; algbw = "
    "size / time; busbw, comparable with the speed of the rails; #wrong = wrong values on all "
    "ranks, - if not checked; in place, - and N/A if the collective has no such call. "
    "GB/s are 10^9 bytes per second. `railhead-perf COLLECTIVE --help` explains size and busbw.\n"
    "Run --preflight first to check the ranks' rails: it prints a line for each check with its "
    "verdict (ok, warn, fail; note: not visible here, or not applicable), the observed value and "
    "the fix. Ranks also ping each other over every rail.\n"
    "Exit status: 0 success; 1 an operation failed, a value was wrong, or a verdict is fail; 2 bad "
    "arguments.";

constexpr const char* kMovedCheck =
    "--check sends arbitrary bits derived from sending rank, index and round, and compares every\n"
    "bit that arrives.";
constexpr const char* kReducedCheck =
    "--check reduces integers derived from rank, index and round, small enough to be exact in the\n"
    "type in any order, and compares every bit of the result with the known answer. A missing\n"
    "rank changes every value for sum (if the type has as many integers as there are ranks), most\n"
    "values for prod, avg and bxor, and the values that this rank decides for min, max, band and\n"
    "bor. avg is checked with sums that are multiples of the number of ranks: at most 8 ranks for\n"
    "f8e5m2, 16 for f8e4m3, 127 for int8 and uint8, 256 for bfloat16, 2048 for half; more ranks\n"
    "are rejected.";

constexpr double kLongestPauseSeconds = 60;

struct Arguments {
  std::string begin = "8";
  std::string end = "8M";
  uint64_t factor = 4;
  std::string type = "float";
  std::string op = "sum";
  int root = 0;
  int iterations = 20;
  int warmup = 50;
  bool check = false;
  bool in_windows = false;
  std::string until;
  std::string pause;
  std::string output = "table";
  std::string transport;
  bool explain = false;
};

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int Complain(int code, absl::string_view text) {
  std::fprintf(stderr, "railhead-perf: %s\n", std::string(text).c_str());
  return code;
}

absl::StatusOr<RunOptions> OptionsOf(const Collective& collective, const Arguments& arguments) {
  const absl::StatusOr<uint64_t> begin = ParseSize(arguments.begin);
  if (!begin.ok()) return begin.status();
  const absl::StatusOr<uint64_t> end = ParseSize(arguments.end);
  if (!end.ok()) return end.status();
  const SizeRange sizes = {*begin, *end, arguments.factor};
  if (absl::Status range = CheckRange(sizes); !range.ok()) return range;
  absl::StatusOr<std::vector<Kind>> kinds =
      Kinds(collective.reduces(), arguments.type, arguments.op);
  if (!kinds.ok()) return kinds.status();
  std::function<bool()> enough;
  if (!arguments.until.empty()) {
    enough = [path = std::filesystem::path(arguments.until)] {
      std::error_code ignored;
      return std::filesystem::exists(path, ignored);
    };
  }
  std::function<void()> before_pass;
  if (!arguments.pause.empty()) {
    before_pass = [path = arguments.pause] {
      double seconds = 0;
      std::ifstream(path) >> seconds;
      absl::SleepFor(absl::Seconds(std::clamp(seconds, 0.0, kLongestPauseSeconds)));
    };
  }
  return RunOptions{&collective,           *std::move(kinds),    sizes,
                    arguments.root,        arguments.iterations, arguments.warmup,
                    arguments.check,       arguments.in_windows, std::move(enough),
                    std::move(before_pass)};
}

// Returns the output of --explain.
absl::StatusOr<std::string> ExplainAll(rhComm_t comm, const RunOptions& options) {
  const Collective& collective = *options.collective;
  absl::StatusOr<std::vector<uint64_t>> sizes = std::vector<uint64_t>{0};
  if (collective.has_data()) sizes = Sizes(options.sizes, 1);
  if (!sizes.ok()) return sizes.status();
  return Explain(comm, collective.name, *sizes);
}

int Measure(const Collective& collective, const Arguments& arguments) {
  const absl::StatusOr<RunOptions> options = OptionsOf(collective, arguments);
  if (!options.ok()) return Complain(kBadUsage, options.status().message());
  if (!arguments.transport.empty()) {
    ::setenv("RAILHEAD_TRANSPORT", arguments.transport.c_str(), 1);
  }
  rhComm_t comm = nullptr;
  if (const rhResult_t result = rhCommInitFromEnv(&comm); result != rhSuccess) {
    return Complain(result == rhInvalidArgument ? kBadUsage : kFailed, rhGetLastError(nullptr));
  }
  const bool table = !arguments.explain && arguments.output == "table";
  const absl::StatusOr<Report> report = Run(comm, *options, [table](const Report& so_far) {
    if (!table) return;
    Print(so_far.rows.empty() ? TableHead(so_far) : TableRow(so_far, so_far.rows.back()));
  });
  if (!report.ok()) {
    Complain(kFailed, report.status().message());
    if (absl::IsInvalidArgument(report.status()) || absl::IsOutOfRange(report.status())) {
      // The other ranks get the same error, possibly later: leave without aborting them.
      rhCommDestroy(comm);
      return kBadUsage;
    }
    rhCommAbort(comm);
    return kFailed;
  }
  absl::StatusOr<std::string> last = table ? TableFoot(*report) : Json(*report);
  if (arguments.explain) last = ExplainAll(comm, *options);
  int rank = 0;
  rhCommUserRank(comm, &rank);
  if (rank == 0 && last.ok()) Print(*last);
  rhCommDestroy(comm);
  if (!last.ok()) return Complain(kFailed, last.status().message());
  return Verified(*report).value_or(true) ? 0 : kFailed;
}

// All ranks check their rails together; rank 0 prints.
int Preflight(const Arguments& arguments) {
  if (!arguments.transport.empty()) {
    ::setenv("RAILHEAD_TRANSPORT", arguments.transport.c_str(), 1);
  }
  PreflightReport report;
  const rhResult_t result =
      rhPreflight([](const rhFinding_t* finding,
                     void* to) { static_cast<PreflightReport*>(to)->Add(*finding); },
                  &report);
  if (result != rhSuccess) {
    return Complain(result == rhInvalidArgument ? kBadUsage : kFailed, rhGetLastError(nullptr));
  }
  const absl::StatusOr<config::Rendezvous> self =
      config::ReadRendezvous(config::ProcessEnvironment);
  if (self.ok() && self->rank == 0) {
    Print(arguments.output == "json" ? report.Json(self->world_size)
                                     : report.Table(self->world_size));
  }
  return report.worst() == Severity::kFail ? kFailed : 0;
}

// The names of a table, and "all".
template <class Table>
std::vector<std::string> NamesOf(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  names.emplace_back(kAll);
  return names;
}

void AddDataOptions(const Collective& collective, CLI::App& command, Arguments& arguments) {
  command.add_option("-b,--minbytes", arguments.begin, "Smallest size; K, M, G allowed")
      ->capture_default_str();
  command
      .add_option("-e,--maxbytes", arguments.end,
                  "Largest size; sizes are rounded down to whole values, at least one")
      ->capture_default_str();
  command.add_option("-f,--stepfactor", arguments.factor, "Factor between successive sizes")
      ->capture_default_str();
  command.add_option("-d,--datatype", arguments.type, "Type of the values, or all")
      ->check(CLI::IsMember(NamesOf(Types())))
      ->capture_default_str();
  if (collective.reduces()) {
    command.add_option("--op", arguments.op, "Reduction operator, or all")
        ->check(CLI::IsMember(NamesOf(Operators())))
        ->capture_default_str();
  }
  if (collective.has_root) {
    command.add_option("-r,--root", arguments.root, "Rank of the root")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
  }
  command.add_flag("-c,--check", arguments.check, "Verify every value on every rank");
  command.add_flag(
      "-R,--register", arguments.in_windows,
      "Use buffers of rhMemAlloc in windows: ranks that share memory access them without "
      "copies");
}

CLI::Option* AddOutputOption(CLI::App& app, Arguments& arguments) {
  return app.add_option("-o,--output", arguments.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

CLI::Option* AddTransportOption(CLI::App& app, Arguments& arguments) {
  return app.add_option("--transport", arguments.transport, "Sets RAILHEAD_TRANSPORT")
      ->check(CLI::IsMember({"auto", "verbs", "tcp", "shm"}));
}

CLI::App* AddCommand(const Collective& collective, CLI::App& app, Arguments& arguments) {
  CLI::App* const command = app.add_subcommand(collective.name, collective.title);
  if (collective.has_data()) AddDataOptions(collective, *command, arguments);
  command->add_option("-n,--iters", arguments.iterations, "Timed operations for each size")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option(
          "-w,--warmup_iters", arguments.warmup,
          "Untimed operations before each size; the library needs up to 48 to find the fastest "
          "algorithm")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--until", arguments.until,
                      "Repeat all sizes until this file exists on rank 0's machine");
  command->add_option(
      "--pause", arguments.pause,
      "Before each pass over all sizes, pause for as many seconds as this file says "
      "on the rank's machine, at most 60: a rank that computes, or waits for its "
      "data. No file: no pause");
  AddTransportOption(*command, arguments);
  command->add_flag(
      "--explain", arguments.explain,
      "Print the algorithm chosen for each size, and why, instead of results: estimated "
      "times of all, and measured times of those tried in up to 48 operations");
  AddOutputOption(*command, arguments);
  std::string foot = collective.measure;
  if (collective.has_data()) {
    absl::StrAppend(&foot, "\n", collective.reduces() ? kReducedCheck : kMovedCheck);
  }
  command->footer(foot);
  return command;
}

int Main(int argc, char** argv) {
  CLI::App app(kAbout, "railhead-perf");
  app.set_version_flag("--version", "railhead-perf " RAILHEAD_VERSION);
  app.require_subcommand(0, 1);
  bool help_env = false;
  app.add_flag("--help-env", help_env, "Print the runtime's environment variables");

  Arguments arguments;
  CLI::App* const preflight = app.add_option_group("Pre-flight", "Check the ranks' rails");
  bool wanted = false;
  CLI::Option* const flag =
      preflight->add_flag("--preflight", wanted, "Check all ranks' rails, without measuring");
  AddOutputOption(*preflight, arguments)->needs(flag);
  AddTransportOption(*preflight, arguments)->needs(flag);
  std::vector<std::pair<const Collective*, CLI::App*>> commands;
  for (const Collective& collective : Collectives()) {
    commands.emplace_back(&collective, AddCommand(collective, app, arguments));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  if (help_env) {
    Print(config::EnvHelp());
    return 0;
  }
  for (const auto& [collective, command] : commands) {
    if (!command->parsed()) continue;
    if (wanted) {
      return Complain(kBadUsage, "--preflight measures nothing: run it without a collective");
    }
    return Measure(*collective, arguments);
  }
  if (wanted) return Preflight(arguments);
  return Complain(kBadUsage, "no collective given; try: railhead-perf all_reduce --help");
}

}  // namespace
}  // namespace railhead::perf

int main(int argc, char** argv) {
  try {
    return railhead::perf::Main(argc, argv);
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "railhead-perf: %s\n", exception.what());
    return 1;
  }
}
