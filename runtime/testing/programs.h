// SPDX-License-Identifier: Apache-2.0
//
// Point-to-point programs of several ranks, made at random, all of which are legal: they must end
// whatever the ranks' pace is.
#ifndef RAILHEAD_RUNTIME_TESTING_PROGRAMS_H_
#define RAILHEAD_RUNTIME_TESTING_PROGRAMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/rails/peer.h"

namespace railhead::testing::programs {

struct Message {
  int from = 0;
  int to = 0;
  size_t size = 0;
};

struct Operation {
  size_t message = 0;
  bool sends = false;
};

// What one rank does: steps, one after the other, of operations that go on at the same time.
using Steps = std::vector<std::vector<Operation>>;

struct Program {
  std::vector<Message> messages;
  std::vector<Steps> ranks;
};

inline size_t RandomSize(std::mt19937& random) {
  constexpr size_t kMiB = size_t{1} << 20;
  switch (random() % 8) {
    case 0:
      return 0;
    case 1:
    case 2:
    case 3:
      return 1 + random() % 2000;
    case 4:
    case 5:
      return random() % (4 * rails::kCopied);
    case 6:
      return random() % kMiB;
    default:
      return random() % (5 * kMiB);
  }
}

// Whether all ranks get to their ends if no message is buffered: if a send or receive ends only
// when the other side has come to its own. What ends so is legal.
inline bool EndsWithoutBuffers(const Program& program) {
  std::vector<size_t> at(program.ranks.size());
  std::vector<int> posted(program.messages.size());
  const auto post = [&](size_t rank) {
    if (at[rank] == program.ranks[rank].size()) return;
    for (const Operation& operation : program.ranks[rank][at[rank]]) ++posted[operation.message];
  };
  for (size_t rank = 0; rank < at.size(); ++rank) post(rank);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < at.size(); ++rank) {
      const Steps& steps = program.ranks[rank];
      if (at[rank] == steps.size()) continue;
      const auto& step = steps[at[rank]];
      if (!std::all_of(step.begin(), step.end(), [&](const Operation& operation) {
            return posted[operation.message] == 2;
          })) {
        continue;
      }
      ++at[rank];
      post(rank);
      moved = true;
    }
  }
  for (size_t rank = 0; rank < at.size(); ++rank) {
    if (at[rank] != program.ranks[rank].size()) return false;
  }
  return true;
}

// Whether messages between any two ranks are sent and received in the same order.
inline bool InOrder(const Program& program) {
  std::map<std::pair<int, int>, std::pair<std::vector<size_t>, std::vector<size_t>>> orders;
  for (const Steps& steps : program.ranks) {
    for (const auto& step : steps) {
      for (const Operation& operation : step) {
        const Message& message = program.messages[operation.message];
        auto& [sent, received] = orders[{message.from, message.to}];
        (operation.sends ? sent : received).push_back(operation.message);
      }
    }
  }
  return std::all_of(orders.begin(), orders.end(),
                     [](const auto& order) { return order.second.first == order.second.second; });
}

inline Program RandomProgram(std::mt19937& random, int ranks) {
  Program program;
  const size_t count = 1 + random() % 40;
  std::vector<std::vector<Operation>> lines(static_cast<size_t>(ranks));
  for (size_t m = 0; m < count; ++m) {
    const int from = static_cast<int>(random() % static_cast<uint32_t>(ranks));
    const int to =
        (from + 1 + static_cast<int>(random() % static_cast<uint32_t>(ranks - 1))) % ranks;
    program.messages.push_back({from, to, RandomSize(random)});
    lines[static_cast<size_t>(from)].push_back({m, true});
    lines[static_cast<size_t>(to)].push_back({m, false});
  }
  // One after the other in one order of all is legal. So it stays when neighbours are put into one
  // group, since that only asks for less; what else is tried is checked.
  for (const auto& line : lines) {
    Steps steps;
    for (const Operation& operation : line) {
      if (steps.empty() || random() % 2 == 0) steps.emplace_back();
      steps.back().push_back(operation);
    }
    program.ranks.push_back(std::move(steps));
  }
  for (uint32_t tries = 0; tries < 2 * count; ++tries) {
    Program other = program;
    Steps& steps = other.ranks[random() % other.ranks.size()];
    if (steps.size() < 2) continue;
    const size_t first = random() % (steps.size() - 1);
    std::swap(steps[first], steps[first + 1]);
    if (InOrder(other) && EndsWithoutBuffers(other)) program = std::move(other);
  }
  return program;
}

inline std::string ToString(const Program& program) {
  std::string text;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    absl::StrAppend(&text, "rank ", rank, ":");
    for (const auto& step : program.ranks[rank]) {
      absl::StrAppend(&text, " {");
      for (const Operation& operation : step) {
        const Message& message = program.messages[operation.message];
        absl::StrAppend(&text, operation.sends ? " >" : " <",
                        operation.sends ? message.to : message.from, ":", message.size);
      }
      absl::StrAppend(&text, " }");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace railhead::testing::programs

#endif  // RAILHEAD_RUNTIME_TESTING_PROGRAMS_H_
