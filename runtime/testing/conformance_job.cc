// SPDX-License-Identifier: Apache-2.0
//
// The matrix of runtime/testing/conformance.h as a job over RDMA rails: this is one of its ranks,
// with the environment that every rank of a job has. All print the same line for each world.
//
// usage: railhead_conformance_job MOST_BYTES     of a call, all ranks' buffers together
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "railhead/railhead.h"
#include "runtime/testing/play.h"

namespace railhead::testing {
namespace {

std::string PlayWorld(const World& world, int rank) {
  ::setenv("RAILHEAD_ALGO", world.pins.c_str(), 1);
  rhComm_t comm = nullptr;
  if (rhCommInitFromEnv(&comm) != rhSuccess) return rhGetLastError(nullptr);
  std::string text = PlayAll(comm, world, rank);
  (text.rfind(kRight, 0) == 0 ? rhCommDestroy : rhCommAbort)(comm);
  return text;
}

int Run(const char* most) {
  const char* const rank_text = std::getenv("RANK");
  const char* const ranks_text = std::getenv("WORLD_SIZE");
  int rank = 0;
  int ranks = 0;
  size_t bytes = 0;
  if (rank_text == nullptr || ranks_text == nullptr || !absl::SimpleAtoi(rank_text, &rank) ||
      !absl::SimpleAtoi(ranks_text, &ranks) || !absl::SimpleAtoi(most, &bytes)) {
    std::fprintf(stderr, "RANK, WORLD_SIZE and MOST_BYTES are numbers\n");
    return 2;
  }
  for (const World& world : Planner(Transport::kVerbs, ranks, bytes).Plan()) {
    const std::string text = PlayWorld(world, rank);
    std::printf("%zu calls, %s: %s\n", world.cases.size(), ToString(world).c_str(), text.c_str());
    std::fflush(stdout);
    if (text.rfind(kRight, 0) != 0) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace railhead::testing

int main(int argc, char** argv) {
  if (argc == 2) return railhead::testing::Run(argv[1]);
  std::fprintf(stderr, "usage: %s MOST_BYTES\n", argv[0]);
  return 2;
}
