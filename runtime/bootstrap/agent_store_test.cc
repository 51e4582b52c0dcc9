// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet through a store, which may have addresses of earlier starts, be late, or be
// something else. tests/launchers has the real one.
#include "runtime/bootstrap/agent_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/meet_for_test.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::FreePort;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

// A server at a port, with a thread per connection. `serve` gets each connection, and returns when
// it is to be closed.
class Server {
 public:
  using Serve = std::function<void(int fd, const std::atomic<bool>& stop)>;
  Server(int port, Serve serve) : serve_(std::move(serve)) {
    listener_ = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), static_cast<uint16_t>(port));
    thread_ = std::thread([this] { Run(); });
  }
  ~Server() {
    stop_ = true;
    thread_.join();
    for (std::thread& thread : connections_) thread.join();
  }

 private:
  void Run() {
    while (!stop_) {
      if (!net::WaitReadable(listener_.get(), In(0.02)).ok()) continue;
      absl::StatusOr<net::Fd> fd = net::Accept(listener_.get());
      if (!fd.ok() || !fd->valid()) continue;
      connections_.emplace_back([this, shared = std::make_shared<net::Fd>(*std::move(fd))] {
        serve_(shared->get(), stop_);
      });
    }
  }

  Serve serve_;
  net::Fd listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
  std::list<std::thread> connections_;
};

// The queries of a TCPStore that AgentStore uses.
class Store {
 public:
  void Set(const std::string& key, const std::string& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_[key] = value;
  }
  Server::Serve Serve() {
    return [this](int fd, const std::atomic<bool>& stop) {
      std::string bytes;
      const auto take = [&](size_t size) {
        while (bytes.size() < size && !stop) {
          if (!net::WaitReadable(fd, In(0.02)).ok()) continue;
          const absl::StatusOr<bool> open = net::ReceiveSome(fd, 4096, &bytes);
          if (!open.ok() || !*open) return std::string();
        }
        std::string taken = bytes.substr(0, size);
        bytes.erase(0, taken.size());
        return taken.size() == size ? taken : std::string();
      };
      const auto number = [&] {
        uint64_t value = 0;
        const std::string taken = take(8);
        if (taken.size() == 8) std::memcpy(&value, taken.data(), 8);
        return value;
      };
      const auto text = [&] { return take(number()); };
      if (take(5) != std::string("\0\xCE\xF7\x85\x3C", 5)) return;
      while (true) {
        const std::string query = take(1);
        if (query.empty()) return;
        std::string answer;
        switch (query[0]) {
          case 1: {
            const std::string key = text();
            Set(key, text());
            continue;
          }
          case 3: {
            const std::string value = Get(text());
            const uint64_t size = value.size();
            answer.assign(reinterpret_cast<const char*>(&size), sizeof size);
            answer += value;
            break;
          }
          case 5:
            if (number() != 1) return;
            answer.assign(1, Get(text()).empty() ? '\1' : '\0');
            break;
          case 6: {
            if (number() != 1) return;
            const std::string key = text();
            while (Get(key).empty() && !stop) absl::SleepFor(absl::Milliseconds(2));
            answer.assign(1, '\0');
            break;
          }
          default:
            return;
        }
        // In parts, as a network may deliver it.
        const size_t part = answer.size() / 2;
        if (!net::SendAll(fd, answer.substr(0, part), In(20)).ok() ||
            !net::SendAll(fd, answer.substr(part), In(20)).ok()) {
          return;
        }
      }
    };
  }

 private:
  std::string Get(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_[key];
  }

  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

JoinOptions Options(int rank, int world_size, int port, const std::string& key,
                    double seconds = 60) {
  JoinOptions options;
  options.rank = rank;
  options.world_size = world_size;
  options.place = std::make_shared<AgentStore>("127.0.0.1", port, key);
  options.job = "job";
  options.deadline = In(seconds);
  options.log = Logger(LogLevel::kError, "");
  return options;
}

TEST(AgentStoreTest, RanksOfSeveralGangsMeetInOneStoreInAnyOrder) {
  std::mt19937 random{20264};
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 12; ++round) {
    Store store;
    const int port = FreePort();
    // Something else that listens where an earlier rank 0 did.
    const int other_port = FreePort();
    const Server other(other_port, [](int fd, const std::atomic<bool>&) {
      net::SendAll(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", In(20)).IgnoreError();
    });
    struct Rank {
      int gang, rank, world, delay_ms;
    };
    std::vector<Rank> ranks;
    const int gangs = 1 + below(3);
    for (int gang = 0; gang < gangs; ++gang) {
      const int world = 2 + below(4);
      const std::string key = absl::StrCat("gang ", gang);
      if (below(3) == 0) {
        store.Set(key, EncodeStoredAddress({static_cast<uint16_t>(FreePort()), std::nullopt}));
      } else if (below(3) == 0) {
        store.Set(key, EncodeStoredAddress({static_cast<uint16_t>(other_port),
                                            *net::IpAddress::Parse("127.0.0.1")}));
      } else if (below(3) == 0) {
        store.Set(key, "of another release");
      }
      for (int rank = 0; rank < world; ++rank) ranks.push_back({gang, rank, world, below(60)});
    }
    const int store_delay = below(60);
    std::unique_ptr<Server> server;
    std::thread later([&] {
      absl::SleepFor(absl::Milliseconds(store_delay));
      server = std::make_unique<Server>(port, store.Serve());
    });
    const std::vector<std::string> met = RunRanks(static_cast<int>(ranks.size()), [&](int number) {
      const Rank& self = ranks[static_cast<size_t>(number)];
      absl::SleepFor(absl::Milliseconds(self.delay_ms));
      return Meet(Options(self.rank, self.world, port, absl::StrCat("gang ", self.gang)),
                  absl::StrCat(self.gang, ".", self.rank));
    });
    later.join();
    for (size_t i = 0; i < ranks.size(); ++i) {
      std::vector<std::string> expected;
      for (int rank = 0; rank < ranks[i].world; ++rank) {
        expected.push_back(absl::StrCat(ranks[i].gang, ".", rank));
      }
      EXPECT_EQ(met[i], absl::StrJoin(expected, " ")) << "round " << round;
    }
  }
}

TEST(AgentStoreTest, WhatIsNotSuchAStoreIsNamedWithTheFix) {
  struct Case {
    Server::Serve serve;
    std::string what;  // a regular expression
    double seconds;
  };
  const Case cases[] = {
      {[](int fd, const std::atomic<bool>&) {
         net::SendAll(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", In(20)).IgnoreError();
       },
       "it answered 'HTTP/1.1 400", 1000},
      {[](int, const std::atomic<bool>&) {},  // In the last attempt, there may be no time left.
       "it closed the connection|it did not answer in", 1},
      {[](int fd, const std::atomic<bool>&) {  // Reset: it may have ended before the first word.
         const linger at_once = {1, 0};
         setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
       },
       "it closed the connection|it did not answer in", 1},
      // As the store of an old PyTorch does, which takes the greeting for the beginning of a key.
      {[](int, const std::atomic<bool>& stop) {
         while (!stop) absl::SleepFor(absl::Milliseconds(5));
       },
       "it did not answer in [0-9.]+m?s", 1},
  };
  for (const Case& one : cases) {
    const int port = FreePort();
    const Server server(port, one.serve);
    const std::vector<std::string> errors =
        RunRanks(2, [&](int rank) { return Meet(Options(rank, 2, port, "key", one.seconds), ""); });
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_THAT(
          errors[static_cast<size_t>(rank)],
          AllOf(HasSubstr(absl::StrCat("rank ", rank, " ")), ::testing::ContainsRegex(one.what),
                HasSubstr(absl::StrCat("the store of torchrun's agent at 127.0.0.1:", port)),
                HasSubstr("TORCHELASTIC_USE_AGENT_STORE=True"), HasSubstr("PyTorch 2.2 or newer"),
                HasSubstr("set TORCHELASTIC_USE_AGENT_STORE=False")));
    }
  }
}

TEST(AgentStoreTest, AStoreWithoutRankZeroOrNoStoreIsNamed) {
  Store store;
  const int port = FreePort();
  {
    const Server server(port, store.Serve());
    EXPECT_THAT(Meet(Options(1, 2, port, "key", 1), ""),
                HasSubstr("rank 0 has not published its address there yet"));
  }
  for (const int rank : {0, 1}) {
    EXPECT_THAT(Meet(Options(rank, 2, port, "key", 1), ""),
                AllOf(HasSubstr("the store of torchrun's agent"), HasSubstr("refused")));
  }
}

TEST(AgentStoreTest, WhoIsToGiveUpDoesNotWaitForTheStore) {
  for (const int rank : {0, 1}) {
    const int port = FreePort();
    const Server silent(port, [](int, const std::atomic<bool>& stop) {
      while (!stop) absl::SleepFor(absl::Milliseconds(5));
    });
    JoinOptions options = Options(rank, 2, port, "key", 1000);
    const absl::Time given_up = In(0.1);
    options.hopeless = [given_up] {
      return MonotonicNow() < given_up ? absl::OkStatus() : absl::AbortedError("given up");
    };
    EXPECT_THAT(Meet(std::move(options), ""), HasSubstr("given up"));
  }
}

TEST(AgentStoreWireTest, AddressesTravel) {
  for (const char* address : {"", "10.0.0.1", "fd00::2"}) {
    StoredAddress stored{40000, std::nullopt};
    if (*address != '\0') stored.address = *net::IpAddress::Parse(address);
    const absl::StatusOr<StoredAddress> parsed = ParseStoredAddress(EncodeStoredAddress(stored));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, stored);
  }
  for (const char* value : {"", "railhead", "railhead 0", "railhead 65536", "railhead 1 x", "1 1",
                            "railhead 1 10.0.0.1 2", "railhead -1"}) {
    EXPECT_FALSE(ParseStoredAddress(value).ok()) << value;
  }
}

}  // namespace
}  // namespace railhead::bootstrap
