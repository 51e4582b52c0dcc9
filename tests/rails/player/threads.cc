// SPDX-License-Identifier: Apache-2.0
//
// Plays programs whose ranks are threads of one process, over RDMA rails of simulated NICs.
// faults.txt has the faults of the NICs, a line each:
//
//   what=down rank=R rail=K at=L of=Q after=SECONDS seconds=SECONDS     SECONDS after rank Q comes
//   to its line L
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/background.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/fake_rails_for_test.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/net/socket.h"
#include "tests/rails/player/command.h"
#include "tests/rails/player/player.h"
#include "tests/rails/player/starter.h"

namespace railhead::player {
namespace {

struct Meeting {
  net::Fd listener = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
  int port = net::LocalAddress(listener.get())->port;
};

rhResult_t Join(const comm::FakeRails& rails, Meeting& meeting, int rank, int ranks, rhComm_t* to) {
  comm::CommunicatorOptions options;
  options.rendezvous = {rank, ranks, "127.0.0.1", meeting.port};
  if (rank == 0) options.listener = std::move(meeting.listener);
  config::Settings& settings = options.setup.settings;
  settings.transport = config::TransportChoice::kVerbs;
  settings.rails_file = rails.File(rank);
  settings.metrics_port = 0;
  settings.timeout = absl::Seconds(60);
  settings.start_timeout = absl::Seconds(60);
  options.setup.place = absl::StrCat("place ", rank);
  options.setup.open_rdma_rail = [&rails](const fabric::PodRail& rail) { return rails.Open(rail); };
  absl::StatusOr<std::unique_ptr<comm::Communicator>> made =
      comm::Communicator::Create(std::move(options));
  if (!made.ok()) return comm::Report(nullptr, made.status());
  auto handle = std::make_unique<rhComm>();
  handle->communicator = *std::move(made);
  *to = handle.release();
  return rhSuccess;
}

// Begins or ends a fault of a rank's NIC.
void Change(transport::verbs::FakeVerbs& nics, const std::string& what, const std::string& nic,
            bool begins) {
  if (what == "down") {
    nics.SetPortState(nic, begins ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
  } else if (what == "hold") {
    nics.HoldCompletions(nic, begins);
  } else {
    for (size_t pair = 0; pair < nics.pairs(nic).size(); ++pair) nics.LosePath(nic, pair, begins);
  }
}

void Disturb(const Command& fault, transport::verbs::FakeVerbs& nics,
             const std::atomic<int32_t>* progress, const std::atomic<bool>& ended) {
  const auto nap = [&ended](double seconds) {
    const absl::Time end = MonotonicNow() + absl::Seconds(seconds);
    while (!ended && MonotonicNow() < end) absl::SleepFor(absl::Milliseconds(2));
  };
  while (!ended && progress[fault.Int("of")].load() < fault.Int("at")) nap(0.002);
  nap(std::stod(fault.Text("after")));
  const std::string nic = absl::StrCat("fake", fault.Int("rank"), "_", fault.Int("rail"));
  Change(nics, fault.Text("what"), nic, true);
  nap(std::stod(fault.Text("seconds")));
  Change(nics, fault.Text("what"), nic, false);
}

void PlayWorld(const Start& start) {
  std::atomic<int32_t>* const progress = start.Progress();
  std::vector<std::FILE*> outs;
  std::vector<std::vector<std::string>> lines;
  for (int rank = 0; rank < start.ranks; ++rank) {
    outs.push_back(start.Out(rank));
    lines.push_back(start.Lines(rank));
  }
  std::vector<Command> faults;
  std::ifstream file(start.folder + "/faults.txt");
  for (std::string line; std::getline(file, line);) faults.emplace_back("fault " + line);
  const Leftovers leftovers;
  std::string violations;
  {
    const comm::FakeRails rails(start.ranks, std::atoi(std::getenv("RAILHEAD_PLAYER_RAILS")));
    Meeting meeting;
    std::atomic<bool> ended = false;
    std::vector<std::thread> ranks;
    std::vector<std::thread> disturbers;
    for (int rank = 0; rank < start.ranks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto at = static_cast<size_t>(rank);
        Player(start.folder, outs[at], progress + rank, [&, rank](rhComm_t* comm) {
          return Join(rails, meeting, rank, start.ranks, comm);
        }).Play(lines[at]);
      });
    }
    for (const Command& fault : faults) {
      disturbers.emplace_back([&] { Disturb(fault, rails.verbs(), progress, ended); });
    }
    for (std::thread& rank : ranks) rank.join();
    ended = true;
    for (std::thread& disturber : disturbers) disturber.join();
    AwaitBackground();
    violations = absl::StrJoin(rails.verbs().violations(), "; ");
    if (rails.verbs().open_objects() != 0) {
      absl::StrAppend(&violations, rails.verbs().open_objects(), " objects of verbs are left");
    }
  }
  if (!violations.empty()) std::fprintf(outs[0], "wrong step=0 %s\n", violations.c_str());
  for (std::FILE* out : outs) std::fflush(out);
  leftovers.Report(outs[0]);
  for (std::FILE* out : outs) {
    std::fprintf(out, "bye\n");
    std::fclose(out);
  }
}

}  // namespace
}  // namespace railhead::player

int main() { return railhead::player::Serve(railhead::player::PlayWorld); }
