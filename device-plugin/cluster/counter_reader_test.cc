// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/counter_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace railhead::device_plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

// NICs that may hang. Outlive their readers.
struct FakeNics {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> hung;
  std::set<std::thread::id> threads;  // in a hung HCA

  void Set(std::set<std::string> now) {
    const std::lock_guard<std::mutex> lock(mutex);
    hung = std::move(now);
    changed.notify_all();
  }
  fabric::PortCounters Read(const Port& port) {
    std::unique_lock<std::mutex> lock(mutex);
    if (hung.contains(port.first)) threads.insert(std::this_thread::get_id());
    changed.wait(lock, [&] { return !hung.contains(port.first); });
    threads.erase(std::this_thread::get_id());
    fabric::PortCounters counters;
    counters.retries = static_cast<uint64_t>(port.second);
    return counters;
  }
};

class CounterReaderTest : public ::testing::Test {
 protected:
  ~CounterReaderTest() override {
    nics_->Set({});
    while (Threads() > 0) std::this_thread::yield();
  }
  std::vector<Port> Read(std::vector<Port> ports) {
    std::vector<Port> read;
    for (const auto& [port, counters] : reader_.Read(std::move(ports))) {
      EXPECT_EQ(counters.retries, static_cast<uint64_t>(port.second));
      read.push_back(port);
    }
    return read;
  }
  // Reads until these are read, as they are soon: on a busy machine, also an HCA that does not hang
  // may be omitted for a moment. No others are ever read.
  void ExpectToRead(const std::vector<Port>& ports, const std::vector<Port>& of) {
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    std::vector<Port> read;
    do {
      read = Read(of);
      EXPECT_THAT(ports, IsSupersetOf(read));
    } while (read != ports && std::chrono::steady_clock::now() < end);
    EXPECT_EQ(read, ports);
  }
  // Returns whether that many threads come to hang.
  bool Hang(size_t threads) {
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    while (Threads() < threads && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return Threads() == threads;
  }
  size_t Threads() {
    const std::lock_guard<std::mutex> lock(nics_->mutex);
    return nics_->threads.size();
  }

  const std::shared_ptr<FakeNics> nics_ = std::make_shared<FakeNics>();
  CounterReader reader_{[nics = nics_](const Port& port) { return nics->Read(port); },
                        milliseconds(500)};
};

TEST_F(CounterReaderTest, ReadsAllPorts) {
  EXPECT_THAT(Read({}), IsEmpty());
  const std::vector<Port> all = {{"a", 1}, {"b", 1}, {"b", 2}};
  ExpectToRead(all, all);
}

TEST_F(CounterReaderTest, HcasThatHangAreOmittedUntilTheyAnswer) {
  const std::vector<Port> all = {{"a", 1}, {"b", 1}, {"b", 2}, {"c", 1}, {"d", 1}};
  const std::vector<Port> well = {{"a", 1}, {"c", 1}};
  nics_->Set({"b", "d"});
  ExpectToRead(well, all);
  EXPECT_TRUE(Hang(2));
  // Later calls do not read them again.
  for (int i = 0; i < 10; ++i) ExpectToRead(well, all);
  EXPECT_EQ(Threads(), 2U);
  nics_->Set({"d"});
  while (Read({{"b", 1}}).empty()) std::this_thread::yield();
  ExpectToRead({{"a", 1}, {"b", 1}, {"b", 2}, {"c", 1}}, all);
}

TEST_F(CounterReaderTest, AnHcaThatHangsAtItsSecondPortIsOmittedAsAWhole) {
  std::atomic<bool> hangs{true};
  CounterReader reader(
      [&hangs](const Port& port) {
        while (port.second == 2 && hangs) std::this_thread::yield();
        return fabric::PortCounters();
      },
      milliseconds(100));
  EXPECT_THAT(reader.Read({{"a", 1}, {"a", 2}}), IsEmpty());
  hangs = false;
  while (reader.Read({{"a", 1}, {"a", 2}}).size() < 2) std::this_thread::yield();
}

TEST_F(CounterReaderTest, MayEndBeforeWhatHangs) {
  nics_->Set({"a"});
  {
    CounterReader reader([nics = nics_](const Port& port) { return nics->Read(port); },
                         milliseconds(10));
    EXPECT_THAT(reader.Read({{"a", 1}}), IsEmpty());
  }
  EXPECT_TRUE(Hang(1));
}

}  // namespace
}  // namespace railhead::device_plugin
