// SPDX-License-Identifier: Apache-2.0
//
// Starts worlds: forks a process for each rank, or for all ranks of a world. It has loaded the
// library and computed the expected values already, so that takes a millisecond.
//
// Commands on stdin, fields separated by tabs:
//
//   table TYPE OP SCALED ROUNDED RANKS     computes values, for all later ranks
//   start KEY NAMESPACE FOLDER RANK RANKS [NAME=VALUE]...
//       a process for the program in FOLDER: rank-RANK.txt has a rank's commands, rank-RANK.out
//       gets what it writes, rank-RANK.log its stderr; NAMESPACE is a file of /run/netns, or -
//
// Answers on stdout: `started KEY PID`, `ended KEY STATUS` (of waitpid), `stopped KEY`.
#ifndef RAILHEAD_TESTS_RAILS_PLAYER_STARTER_H_
#define RAILHEAD_TESTS_RAILS_PLAYER_STARTER_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace railhead::player {

// What a started process is to do.
struct Start {
  std::string folder;
  int rank = 0;
  int ranks = 0;

  std::vector<std::string> Lines(int of_rank) const;
  std::FILE* Out(int of_rank) const;
  // The numbers of the lines that all ranks are playing.
  std::atomic<int32_t>* Progress() const;
};

// Descriptors and threads of this process, to find what is left of the library's at the end.
class Leftovers {
 public:
  // What is there now belongs to the process.
  Leftovers();
  // Waits until nothing else is left, and writes what is left after all, or was for long.
  void Report(std::FILE* out) const;

 private:
  std::string Left() const;

  std::set<std::string> descriptors_;
};

// Serves stdin until its end. `play` runs in a process of its own, which ends with exit()
// afterwards.
int Serve(const std::function<void(const Start&)>& play);

}  // namespace railhead::player

#endif  // RAILHEAD_TESTS_RAILS_PLAYER_STARTER_H_
