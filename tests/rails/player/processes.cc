// SPDX-License-Identifier: Apache-2.0
//
// Plays programs whose ranks are processes, with the library that programs link.
#include <cstdio>

#include "tests/rails/player/player.h"
#include "tests/rails/player/starter.h"

int main() {
  return railhead::player::Serve([](const railhead::player::Start& start) {
    std::FILE* const out = start.Out(start.rank);
    std::atomic<int32_t>* const progress = start.Progress() + start.rank;
    const auto lines = start.Lines(start.rank);
    const railhead::player::Leftovers leftovers;
    railhead::player::Player(start.folder, out, progress, nullptr).Play(lines);
    leftovers.Report(out);
    std::fprintf(out, "bye\n");
    std::fclose(out);
  });
}
