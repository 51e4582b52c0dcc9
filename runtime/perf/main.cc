// SPDX-License-Identifier: Apache-2.0
//
// railhead-perf: measures collectives between the ranks of a job.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "absl/status/statusor.h"
#include "railhead/railhead.h"
#include "runtime/config/env.h"
#include "runtime/perf/report.h"
#include "runtime/perf/runner.h"
#include "runtime/perf/sizes.h"

namespace railhead::perf {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

constexpr const char* kAbout =
    "Measures collectives between the ranks of a job. Start one process for each rank, with RANK, "
    "WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment (the Railhead operator sets them "
    "in "
    "pods that ask for rdma/hca); rank 0 prints.\n"
    "Try it on one machine:\n"
    "  for r in 0 1; do RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \\\n"
    "    railhead-perf all_reduce -b 8 -e 8M -f 4 --check & done; wait\n"
    "Columns: size of the data of each rank; time of one operation; algbw = size / time; busbw = "
    "algbw * 2(n-1)/n, which can be compared with the speed of the rails; #wrong = wrong values on "
    "all ranks. GB/s are 10^9 bytes per second.\n"
    "Exit status: 0 well; 1 an operation failed or a value was wrong; 2 bad arguments.";

struct Arguments {
  std::string begin = "8";
  std::string end = "8M";
  uint64_t factor = 4;
  int iterations = 20;
  int warmup = 5;
  bool check = false;
  std::string output = "table";
};

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int Complain(int code, absl::string_view text) {
  std::fprintf(stderr, "railhead-perf: %s\n", std::string(text).c_str());
  return code;
}

int AllReduce(const Arguments& arguments) {
  const absl::StatusOr<uint64_t> begin = ParseSize(arguments.begin);
  if (!begin.ok()) return Complain(kBadUsage, begin.status().message());
  const absl::StatusOr<uint64_t> end = ParseSize(arguments.end);
  if (!end.ok()) return Complain(kBadUsage, end.status().message());
  absl::StatusOr<std::vector<uint64_t>> sizes = Sizes(*begin, *end, arguments.factor);
  if (!sizes.ok()) return Complain(kBadUsage, sizes.status().message());

  rhComm_t comm = nullptr;
  if (const rhResult_t result = rhCommInitFromEnv(&comm); result != rhSuccess) {
    return Complain(result == rhInvalidArgument ? kBadUsage : kFailed, rhGetLastError(nullptr));
  }
  const bool table = arguments.output == "table";
  const absl::StatusOr<Report> report =
      Run(comm, {*std::move(sizes), arguments.iterations, arguments.warmup, arguments.check},
          [table](const Report& so_far) {
            if (!table) return;
            Print(so_far.rows.empty() ? TableHead(so_far) : TableRow(so_far, so_far.rows.back()));
          });
  if (!report.ok()) {
    Complain(kFailed, report.status().message());
    rhCommAbort(comm);
    return kFailed;
  }
  int rank = 0;
  rhCommUserRank(comm, &rank);
  if (rank == 0) Print(table ? TableFoot(*report) : Json(*report));
  rhCommDestroy(comm);
  return Verified(*report).value_or(true) ? 0 : kFailed;
}

int Main(int argc, char** argv) {
  CLI::App app(kAbout, "railhead-perf");
  app.set_version_flag("--version", "railhead-perf " RAILHEAD_VERSION);
  app.require_subcommand(0, 1);
  bool help_env = false;
  app.add_flag("--help-env", help_env, "Print the environment variables that the runtime reads");

  Arguments arguments;
  CLI::App* const all_reduce =
      app.add_subcommand("all_reduce", "Sum float32 values over all ranks");
  all_reduce->add_option("-b,--minbytes", arguments.begin, "Smallest size; K, M, G allowed")
      ->capture_default_str();
  all_reduce->add_option("-e,--maxbytes", arguments.end, "Largest size")->capture_default_str();
  all_reduce->add_option("-f,--stepfactor", arguments.factor, "Each size is so many times the last")
      ->capture_default_str();
  all_reduce->add_option("-n,--iters", arguments.iterations, "Timed operations for each size")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  all_reduce
      ->add_option("-w,--warmup_iters", arguments.warmup, "Untimed operations before each size")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  all_reduce->add_flag("-c,--check", arguments.check, "Verify every value on every rank");
  all_reduce->add_option("-o,--output", arguments.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  if (help_env) {
    Print(config::EnvHelp());
    return 0;
  }
  if (all_reduce->parsed()) return AllReduce(arguments);
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
