// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/work_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"

namespace railhead {
namespace {

// Tasks of several threads: whoever has the lock does those of all others, until its own is done.
class Desk {
 public:
  explicit Desk(size_t tasks) : done_(tasks) {}

  void Do(size_t own, std::mt19937& random) {
    asked_.fetch_add(1);
    const auto done = [&] { return done_[own].load(); };
    while (!done()) {
      if (!lock_.LockUnless(done)) continue;
      EXPECT_EQ(working_.fetch_add(1), 0) << "two threads work";
      for (size_t i = 0; i < done_.size() && !done(); ++i) {
        const size_t task = random() % done_.size();
        if (task == own || random() % 4 == 0) done_[task] = true;
        if (random() % 16 == 0) std::this_thread::yield();
        lock_.WakeWaiters();
      }
      working_.fetch_sub(1);
      lock_.Unlock();
    }
  }

 private:
  WorkLock lock_;
  std::vector<std::atomic<bool>> done_;
  std::atomic<int> working_{0};
  std::atomic<int> asked_{0};
};

TEST(WorkLockTest, OneThreadWorksAndTheOthersLearnWhatItHasDone) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const size_t threads = 2 + seed % 5;
    Desk desk(threads);
    std::vector<std::thread> all;
    for (size_t i = 0; i < threads; ++i) {
      all.emplace_back([&desk, i, seed] {
        std::mt19937 random(seed * 16 + static_cast<uint32_t>(i));
        desk.Do(i, random);
      });
    }
    for (std::thread& each : all) each.join();
  }
}

TEST(WorkLockTest, AWaitEndsAtItsDeadline) {
  WorkLock lock;
  ASSERT_TRUE(lock.TryLock());
  EXPECT_FALSE(lock.TryLock());
  const absl::Time start = MonotonicNow();
  EXPECT_FALSE(lock.LockUnless([] { return false; }, start + absl::Milliseconds(30)));
  EXPECT_GE(MonotonicNow() - start, absl::Milliseconds(30));
  EXPECT_FALSE(lock.wanted());
  lock.Unlock();
  EXPECT_TRUE(lock.LockUnless([] { return false; }, MonotonicNow()));
}

TEST(WorkLockTest, WhoWorksSeesThatAnotherThreadWants) {
  WorkLock lock;
  ASSERT_TRUE(lock.TryLock());
  std::atomic<bool> got{false};
  std::thread other([&] {
    EXPECT_TRUE(lock.LockUnless([] { return false; }));
    got = true;
    lock.Unlock();
  });
  while (!lock.wanted()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(got);
  lock.Unlock();
  other.join();
  EXPECT_TRUE(got);
}

}  // namespace
}  // namespace railhead
