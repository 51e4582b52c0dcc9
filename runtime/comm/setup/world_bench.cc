// SPDX-License-Identifier: Apache-2.0
//
// What one rank of a large world says, hears and keeps from the rendezvous until it is connected,
// and when it first looks for a rank: ranks are simulated, with the nodes of the real tree, the
// real statements and decisions, and messages that are counted in place of sent.
//
// usage: railhead_world_bench          a table in Markdown
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/tree.h"
#include "runtime/comm/setup/agreement.h"

namespace railhead::comm {
namespace {

using bootstrap::Node;

constexpr int kRails = 8;
constexpr int kPerPod = 8;
// A acceptor's address over IPv6 (transport/connect/acceptor.h): length, address, port, token.
constexpr size_t kHall = 4 + 16 + 2 + 16;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t Allocated() { return mallinfo2().uordblks; }

// All ranks of a world, and how many bytes each has sent and received.
class World {
 public:
  explicit World(int size) : bytes_(static_cast<size_t>(size)) {
    const size_t before = Allocated();
    for (int rank = 0; rank < size; ++rank) {
      nodes_.push_back(std::make_unique<Node>(rank, size));
      for (const std::optional<int> above : {bootstrap::Parent(rank), bootstrap::Guardian(rank)}) {
        if (above.has_value()) nodes_.back()->AttachUp(*above);
      }
      for (const auto& below :
           {bootstrap::Children(rank, size), bootstrap::Grandchildren(rank, size)}) {
        for (const int other : below) nodes_.back()->AttachDown(other);
      }
    }
    memory_ = (Allocated() - before) / static_cast<size_t>(size);
  }

  int size() const { return static_cast<int>(nodes_.size()); }
  // Of a node, in bytes on average.
  size_t memory() const { return memory_; }
  const std::vector<size_t>& bytes() const { return bytes_; }

  void Do(int rank, const std::function<void(Node&)>& what) {
    what(*nodes_[static_cast<size_t>(rank)]);
    Collect(rank);
    while (!queue_.empty()) {
      const auto [from, message] = std::move(queue_.front());
      queue_.pop_front();
      bytes_[static_cast<size_t>(from)] += message.payload->size();
      bytes_[static_cast<size_t>(message.to)] += message.payload->size();
      ++messages_;
      nodes_[static_cast<size_t>(message.to)]->Receive(from, message.kind, *message.payload);
      Collect(message.to);
    }
  }
  size_t TakeMessages() { return std::exchange(messages_, 0); }

 private:
  void Collect(int rank) {
    for (Node::Outgoing& message : nodes_[static_cast<size_t>(rank)]->TakeOutgoing()) {
      queue_.emplace_back(rank, std::move(message));
    }
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<size_t> bytes_;
  std::deque<std::pair<int, Node::Outgoing>> queue_;
  size_t messages_ = 0;
  size_t memory_ = 0;
};

std::string Statement(int rank, int world) {
  RankReport report;
  report.name = absl::StrCat("rank ", rank, " (pod trainer-", rank / kPerPod, ")");
  report.has_rails_file = true;
  for (int rail = 0; rail < kRails; ++rail) {
    report.rails.push_back({rail, absl::StrCat("mlx5_", rail), "", "400 Gb/sec (4X NDR)", 4096});
  }
  report.place = absl::StrCat("4026531836 ", rank / kPerPod);
  report.cores = std::string(24, '\xff');
  report.rejoin_address = std::string(kRejoinAddressLimit, 'd');
  struct Statement statement;
  statement.report = Encode(report);
  statement.addresses.assign(kRails, std::string(kHall, 'h'));
  statement.wanted = {(rank + 1) % world, (rank + world - 1) % world};
  return Encode(statement);
}

std::string Kib(size_t bytes) { return absl::StrCat((bytes + 1023) / 1024, " KiB"); }

void Row(int world) {
  World simulated(world);
  Coordinator coordinator(std::string(32, 'k'));
  double deciding = 0;
  const Node::Decide decide = [&](const std::vector<std::string>& parts) {
    const double begin = Seconds();
    auto answer = coordinator.Answer(parts);
    deciding = Seconds() - begin;
    return answer;
  };
  // Those without children first: nobody waits for anybody.
  for (int rank = world - 1; rank >= 0; --rank) {
    simulated.Do(rank, [&](Node& node) { node.Give(Statement(rank, world), decide); });
  }
  size_t kept = 0;
  bool good = true;
  simulated.Do(world - 1, [&](Node& node) {
    const auto result = node.TakeResult();
    const size_t before = Allocated();
    const auto agreement = ParseAgreement(result->for_all, world);
    const auto particulars = ParseParticulars(result->for_this, world);
    kept = Allocated() - before;
    good = agreement.ok() && particulars.ok() && agreement->decision.verbs &&
           particulars->wanted.size() == 2;
  });
  std::vector<size_t> bytes = simulated.bytes();
  const size_t root = bytes.front();
  const size_t largest = *std::max_element(bytes.begin() + 1, bytes.end());
  std::nth_element(bytes.begin(), bytes.begin() + world / 2, bytes.end());
  const size_t median = bytes[static_cast<size_t>(world) / 2];
  size_t neighbours = 0;
  for (int rank = 0; rank < world; ++rank) {
    const size_t above = rank == 0 ? 0 : bootstrap::Guardian(rank).has_value() ? 2 : 1;
    neighbours = std::max(neighbours, above + bootstrap::Children(rank, world).size() +
                                          bootstrap::Grandchildren(rank, world).size());
  }
  simulated.TakeMessages();
  simulated.Do(world - 1, [&](Node& node) { node.Locate(world / 2); });
  const size_t hops = simulated.TakeMessages();
  if (!good) {
    std::fprintf(stderr, "the ranks of a world of %d did not agree\n", world);
    std::exit(1);
  }
  std::printf("| %d | %s | %s | %s | %s | %s | %.2f s | %zu | %zu |\n", world, Kib(median).c_str(),
              Kib(largest).c_str(), Kib(root).c_str(), Kib(kept).c_str(),
              Kib(simulated.memory()).c_str(), deciding, neighbours, hops);
  std::fflush(stdout);
}

}  // namespace
}  // namespace railhead::comm

int main() {
  std::printf(
      "| ranks | bytes of a rank, median | largest but rank 0 | rank 0 | kept by a rank | its part "
      "of the tree | rank 0 decides in | descriptors for the tree, at most | messages to find a "
      "rank |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const int world : {64, 250, 1000, 4000, 16000}) railhead::comm::Row(world);
  return 0;
}
