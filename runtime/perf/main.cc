// SPDX-License-Identifier: Apache-2.0
//
// railhead-perf: measures collectives between the ranks of a job.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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
    "in pods that ask for rdma/hca); rank 0 prints.\n"
    "Try it on one machine:\n"
    "  for r in 0 1; do RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \\\n"
    "    railhead-perf all_reduce -b 8 -e 8M -f 4 --check & done; wait\n"
    "Columns are those of nccl-tests: size and count of the data; time of one operation; algbw = "
    "size / time; busbw, which can be compared with the speed of the rails; #wrong = wrong values "
    "on all ranks, - where they were not checked; in place, - and N/A where there is no such call. "
    "GB/s are 10^9 bytes per second. `railhead-perf COLLECTIVE --help` says what size and busbw "
    "are.\n"
    "Before that, --preflight says whether the ranks' rails are as they should be: a line for each "
    "thing that was looked at, with its verdict (ok, warn, fail; note: not to be seen from here, "
    "or "
    "of no meaning), what was seen and what to do. Ranks also ask each other over every rail.\n"
    "Exit status: 0 well; 1 an operation failed, a value was wrong, or a verdict is fail; 2 bad "
    "arguments.";

constexpr const char* kMovedCheck =
    "--check sends values of arbitrary bits, which follow from the sending rank, the place and\n"
    "the round, and compares every bit that arrives.";
constexpr const char* kReducedCheck =
    "--check reduces whole numbers that follow from rank, place and round, so small that every\n"
    "order of reducing is exact in the type, and compares every bit of the result with the known\n"
    "answer. A missing rank shows in every value for sum (where the type has as many whole\n"
    "numbers as there are ranks), in most for prod, avg and bxor, and for min, max, band and bor\n"
    "in those that this rank decides. avg is checked with sums that are multiples of the ranks:\n"
    "f8e5m2 has them for up to 8 ranks, f8e4m3 16, int8 and uint8 127, bfloat16 256, half 2048;\n"
    "more are refused.";

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
  return RunOptions{&collective,     *std::move(kinds),    sizes,
                    arguments.root,  arguments.iterations, arguments.warmup,
                    arguments.check, arguments.in_windows, std::move(enough)};
}

// What there is to say in place of a table.
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
      // The other ranks find the same, if a little later: they are left, not cut off.
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

// All ranks look at their rails together; rank 0 prints.
int Preflight(const Arguments& arguments) {
  if (!arguments.transport.empty()) {
    ::setenv("RAILHEAD_TRANSPORT", arguments.transport.c_str(), 1);
  }
  std::vector<Finding> findings;
  const rhResult_t result = rhPreflight(
      [](const rhFinding_t* finding, void* to) {
        static_cast<std::vector<Finding>*>(to)->push_back(Keep(*finding));
      },
      &findings);
  if (result != rhSuccess) {
    return Complain(result == rhInvalidArgument ? kBadUsage : kFailed, rhGetLastError(nullptr));
  }
  const absl::StatusOr<config::Rendezvous> self =
      config::ReadRendezvous(config::ProcessEnvironment);
  if (self.ok() && self->rank == 0) {
    Print(arguments.output == "json" ? PreflightJson(self->world_size, findings)
                                     : PreflightTable(self->world_size, findings));
  }
  return Worst(findings) == rhFindingFail ? kFailed : 0;
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
                  "Largest size; all are rounded down to whole values, but to one at least")
      ->capture_default_str();
  command.add_option("-f,--stepfactor", arguments.factor, "Each size is so many times the last")
      ->capture_default_str();
  command.add_option("-d,--datatype", arguments.type, "Type of the values, or all")
      ->check(CLI::IsMember(NamesOf(Types())))
      ->capture_default_str();
  if (collective.reduces()) {
    command.add_option("--op", arguments.op, "How values are reduced, or all")
        ->check(CLI::IsMember(NamesOf(Operators())))
        ->capture_default_str();
  }
  if (collective.has_root) {
    command.add_option("-r,--root", arguments.root, "Rank of the root")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
  }
  command.add_flag("-c,--check", arguments.check, "Verify every value on every rank");
  command.add_flag("-R,--register", arguments.in_windows,
                   "Buffers of rhMemAlloc, in windows: ranks that share memory work on them where "
                   "they lie");
}

CLI::Option* AddOutputOption(CLI::App& app, Arguments& arguments) {
  return app.add_option("-o,--output", arguments.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

CLI::Option* AddTransportOption(CLI::App& app, Arguments& arguments) {
  return app.add_option("--transport", arguments.transport, "The same as RAILHEAD_TRANSPORT")
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
          "Untimed operations before each size; the library needs up to 48 to learn the fastest "
          "algorithm")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--until", arguments.until,
                      "Repeat all sizes until this file exists where rank 0 runs");
  AddTransportOption(*command, arguments);
  command->add_flag("--explain", arguments.explain,
                    "Say in place of the figures which algorithm is chosen for each size, and why: "
                    "what each was estimated to take, and those that were tried took. It takes up "
                    "to 48 operations to try them");
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
  app.add_flag("--help-env", help_env, "Print the environment variables that the runtime reads");

  Arguments arguments;
  CLI::App* const preflight =
      app.add_option_group("Pre-flight", "Whether the ranks' rails are as they should be");
  bool wanted = false;
  CLI::Option* const flag =
      preflight->add_flag("--preflight", wanted, "Look at all ranks' rails, and measure nothing");
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
      return Complain(kBadUsage, "--preflight measures nothing: give it without a collective");
    }
    return Measure(*collective, arguments);
  }
  if (wanted) return Preflight(arguments);
  return Complain(kBadUsage, "which collective? Try: railhead-perf all_reduce --help");
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
