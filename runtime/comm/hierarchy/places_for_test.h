// SPDX-License-Identifier: Apache-2.0
//
// Worlds of ranks in several places, chosen by a test, on one machine: shared memory within a
// place, TCP between places.
#ifndef RAILHEAD_RUNTIME_COMM_HIERARCHY_PLACES_FOR_TEST_H_
#define RAILHEAD_RUNTIME_COMM_HIERARCHY_PLACES_FOR_TEST_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"
#include "runtime/shm/segment_server.h"
#include "runtime/testing/ranks.h"

namespace railhead::comm {

// Rendezvous of the ranks: a listening port that no other process can get.
struct Meeting {
  net::Fd listener = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
  int port = net::LocalAddress(listener.get())->port;
};

inline constexpr const char* kHierarchical =
    "all_reduce=hierarchical,reduce_scatter=hierarchical,all_gather=hierarchical,"
    "broadcast=hierarchical,barrier=hierarchical";

struct World {
  std::vector<int> place_of;  // by rank
  std::string algorithms = kHierarchical;
  absl::Duration timeout = absl::Seconds(60);
  config::TransportChoice transport = config::TransportChoice::kAuto;

  // Returns places of the given sizes, with consecutive ranks.
  static World Of(const std::vector<int>& sizes) {
    World world;
    for (size_t place = 0; place < sizes.size(); ++place) {
      world.place_of.insert(world.place_of.end(), static_cast<size_t>(sizes[place]),
                            static_cast<int>(place));
    }
    return world;
  }
  // Returns places of the given sizes, with ranks in a random order.
  static World Shuffled(const std::vector<int>& sizes, unsigned seed) {
    World world = Of(sizes);
    std::mt19937 random(seed);
    std::shuffle(world.place_of.begin(), world.place_of.end(), random);
    return world;
  }

  int ranks() const { return static_cast<int>(place_of.size()); }
  bool Together(int a, int b) const {
    return place_of[static_cast<size_t>(a)] == place_of[static_cast<size_t>(b)];
  }
  std::string ToString() const { return absl::StrCat("places ", absl::StrJoin(place_of, " ")); }

  absl::StatusOr<std::unique_ptr<Communicator>> Join(int rank, Meeting& meeting) const {
    CommunicatorOptions options;
    options.rendezvous = {rank, ranks(), "127.0.0.1", meeting.port};
    if (rank == 0) options.listener = std::move(meeting.listener);
    options.setup.settings.pod = absl::StrCat("p", rank);
    options.setup.settings.rails_file = "/nonexistent/rails.json";
    options.setup.settings.metrics_port = 0;
    options.setup.settings.timeout = timeout;
    options.setup.settings.start_timeout = absl::Seconds(60);
    options.setup.settings.log_level = LogLevel::kError;
    options.setup.settings.algorithms = algorithms;
    options.setup.settings.transport = transport;
    options.setup.place =
        absl::StrCat(shm::PlaceOfProcess(), " ", place_of[static_cast<size_t>(rank)]);
    return Communicator::Create(std::move(options));
  }

  // Returns the results of `body` on all ranks, which run as threads.
  std::vector<std::string> Run(
      const std::function<std::string(Communicator& comm, int rank)>& body) const {
    Meeting meeting;
    return testing::RunRanks(ranks(), [&](int rank) -> std::string {
      absl::StatusOr<std::unique_ptr<Communicator>> comm = Join(rank, meeting);
      if (!comm.ok()) return std::string(comm.status().message());
      return body(**comm, rank);
    });
  }
  std::vector<std::string> All(const std::string& text) const {
    return std::vector<std::string>(static_cast<size_t>(ranks()), text);
  }
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_HIERARCHY_PLACES_FOR_TEST_H_
