// SPDX-License-Identifier: Apache-2.0
//
// Plays a world of the matrix (conformance.h) on a communicator, through the C API.
#ifndef RAILHEAD_RUNTIME_TESTING_PLAY_H_
#define RAILHEAD_RUNTIME_TESTING_PLAY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "railhead/railhead.h"
#include "runtime/testing/call.h"
#include "runtime/testing/collectives.h"
#include "runtime/testing/conformance.h"

namespace railhead::testing {

inline constexpr const char* kRight = "right ";

// Whether collectives are done as they were asked to be; "" if they are.
inline std::string WrongWay(rhComm_t comm, const World& world) {
  rhCommInfo_t info;
  info.struct_size = sizeof info;
  rhCommGetInfo(comm, &info);
  const bool shm = world.transport == Transport::kShm;
  const bool verbs = world.transport == Transport::kVerbs;
  if (std::string(info.transport) != (shm ? "shm" : verbs ? "verbs" : "tcp")) {
    return absl::StrCat("on ", info.transport, ": ", info.degraded_reason);
  }
  for (const Way& way : world.ways) {
    if (way.collective == Collective::kSendReceive) continue;
    std::array<char, 4096> text{};
    rhCommExplain(comm, Name(way.collective), 1 << 20, text.data(), text.size());
    const std::string explained = text.data();
    std::string wanted = absl::StrCat(": ", Name(way.algorithm), ", set by RAILHEAD_ALGO");
    if (way.algorithm == Algorithm::kSharedMemory) wanted = "all ranks share memory";
    if (way.algorithm == Algorithm::kHierarchical) {
      wanted = absl::StrCat(": hierarchical (", Name(way.column), "), set by RAILHEAD_ALGO");
    }
    if (explained.find(wanted) == std::string::npos) {
      return absl::StrCat("expected ", wanted, ", not ", explained);
    }
  }
  return "";
}

// The sizes, in bytes as in metrics, at which the tuner changes its mind; the same on all ranks.
inline std::vector<size_t> Switches(rhComm_t comm, Collective collective, size_t most) {
  const auto choice = [&](size_t bytes) {
    std::array<char, 4096> text{};
    rhCommExplain(comm, Name(collective), bytes, text.data(), text.size());
    const std::string first = text.data();  // "... among 4 ranks: ring, ..."
    const size_t begin = first.find(": ") + 2;
    return first.substr(begin, first.find(',') - begin);
  };
  std::vector<size_t> switches;
  for (size_t low = 1; low < most; low *= 2) {
    if (choice(low) == choice(2 * low)) continue;
    size_t same = low;
    size_t other = 2 * low;
    while (other - same > 1) {
      const size_t middle = (same + other) / 2;
      (choice(middle) == choice(low) ? same : other) = middle;
    }
    switches.push_back(same);
  }
  return switches;
}

// Around these: what the tuner left to itself does.
inline std::vector<CollectiveCase> AroundSwitches(rhComm_t comm, int ranks) {
  std::vector<CollectiveCase> cases;
  for (const Collective collective : kAllCollectives) {
    if (PinnableAlgorithms(collective).size() < 2) continue;
    const bool parts = HasUneven(collective) || collective == Collective::kGather ||
                       collective == Collective::kScatter;
    for (const size_t bytes : Switches(comm, collective, size_t{1} << 20U)) {
      const size_t count = bytes / (parts ? static_cast<size_t>(ranks) : 1);
      for (const size_t more : {count, count + 1}) {
        cases.push_back({collective, rhUint8, rhSum, more, ranks - 1, more % 2 == 0});
      }
    }
  }
  return cases;
}

// Does all calls of a world. Returns kRight and what ranks must have in common, or what is wrong.
inline std::string PlayAll(rhComm_t comm, const World& world, int rank) {
  std::string wrong = WrongWay(comm, world);
  if (!wrong.empty()) return wrong;
  std::mt19937 random(static_cast<unsigned>(rank));
  uint64_t common = 0;
  uint64_t number = 0;
  const auto play = [&](const CollectiveCase& c) {
    // Ranks stay behind now and then.
    if (random() % 64 == 0) absl::SleepFor(absl::Microseconds(random() % 500));
    Trial trial(c, rank, world.ranks, number++);
    wrong = Play(comm, trial);
    if (c.collective == Collective::kAllReduce) {
      common = Mix(common ^ std::hash<std::string>()(std::string(trial.result())));
    }
    return wrong.empty();
  };
  for (const PlannedCase& planned : world.cases) {
    if (!play(planned.c)) return absl::StrCat("case ", number - 1, ": ", wrong);
  }
  if (world.ways.empty()) {
    for (const CollectiveCase& c : AroundSwitches(comm, world.ranks)) {
      if (!play(c)) return absl::StrCat("around a switch: ", wrong);
    }
  }
  return absl::StrCat(kRight, common);
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_PLAY_H_
