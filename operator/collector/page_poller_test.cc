// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_poller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "kube/monotonic.h"
#include "kube/testing/soon.h"
#include "operator/verdict/judge.h"

namespace railhead::op {
namespace {

using kube::testing::Soon;
using verdict::PodFacts;

using Pace = PagePoller::Pace;

// Pods whose addresses are their names, and threads that ask them.
class PagePollerTest : public ::testing::Test {
 protected:
  explicit PagePollerTest(const std::vector<Pace>& paces = {Pace::kFirst, Pace::kUsual,
                                                            Pace::kBacklog, Pace::kSlow}) {
    for (const Pace pace : paces) {
      for (int i = 0; i < 2; ++i) threads_.emplace_back([this, pace] { poller_.Run(pace); });
    }
  }
  ~PagePollerTest() override {
    hang_ = false;
    poller_.ShutDown();
    for (std::thread& thread : threads_) thread.join();
  }

  void Put(const std::string& name, const std::string& gang = "") {
    auto pod = std::make_shared<PodFacts>();
    pod->name = pod->uid = pod->address = name;
    pod->metrics_port = 9402;
    pod->running_since = absl::UnixEpoch();
    verdict::PodTerms terms;
    terms.gang = gang;
    pod->terms = std::move(terms);
    const std::lock_guard<std::mutex> lock(mutex_);
    pods_[name] = pod;
  }
  // It has started under our eyes.
  void Begin(const std::string& name) {
    poller_.Begin(name);
    poller_.Follow(name);
  }
  int Asked(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_[name];
  }
  int News(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return news_[name];
  }

  std::mutex mutex_;  // guards the next three
  std::map<std::string, std::shared_ptr<const PodFacts>> pods_;
  std::map<std::string, int> asked_;
  std::map<std::string, int> news_;

  std::atomic<bool> leads_{true};
  std::atomic<bool> hang_{true};
  std::atomic<int64_t> seconds_{0};
  PagePoller poller_{
      [this](const std::string& key) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return pods_.contains(key) ? pods_[key] : nullptr;
      },
      [this](const std::string& address, int, absl::Duration) { return Answer(address); },
      [this] { return leads_.load(); },
      [this] { return absl::UnixEpoch() + absl::Seconds(seconds_.load()); },
      [this](const std::string& key) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++news_[key];
      }};
  std::string page_ = "railhead_degraded{rank=\"0\",reason=\"\"} 0\n";  // $ is the pod's name
  std::vector<std::thread> threads_;

 private:
  // "hang..." runs into its deadline, "closed..." refuses, others have a page.
  absl::StatusOr<std::string> Answer(const std::string& name) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++asked_[name];
    }
    if (name.substr(0, 4) == "hang") {
      if (Asked(name) > 1) Soon([this] { return !hang_; });
      return absl::DeadlineExceededError("no page");
    }
    if (name.substr(0, 6) == "closed") return absl::UnavailableError("nobody listens");
    return absl::StrReplaceAll(page_, {{"$", name}});
  }
};

TEST_F(PagePollerTest, WhoHangsIsAskedSeldomAndKeepsNobodyWaiting) {
  const absl::Time begin = kube::MonotonicNow();
  for (const char* name : {"hang1", "hang2", "hang3", "hang4", "hang5"}) {
    Put(name);
    Begin(name);
    ASSERT_TRUE(Soon([&] { return Asked(name) == 1; }));
  }
  ASSERT_TRUE(Soon([&] { return poller_.Counts().unreachable == 5; }));
  // That they have changed does not hasten the next question, which would have all askers hang.
  for (const char* name : {"hang1", "hang2", "hang3", "hang4", "hang5"}) poller_.Follow(name);
  Put("good");
  Begin("good");
  EXPECT_TRUE(Soon([&] { return Asked("good") >= 2; }));
  // Once, unless this machine is so busy that it is time for the next.
  const auto later = static_cast<int>((kube::MonotonicNow() - begin) / absl::Seconds(10));
  for (const char* name : {"hang1", "hang2", "hang3", "hang4", "hang5"}) {
    EXPECT_LE(Asked(name), 1 + later) << name;
  }
}

TEST_F(PagePollerTest, AQuestionInVainIsNoNewsUntilItHasLasted) {
  Put("closed");
  Begin("closed");
  ASSERT_TRUE(Soon([&] { return Asked("closed") >= 2; }));
  EXPECT_EQ(News("closed"), 0);
  seconds_ = absl::ToInt64Seconds(verdict::kSilence);
  ASSERT_TRUE(Soon([&] { return News("closed") == 1; }));
  const int asked = Asked("closed");
  ASSERT_TRUE(Soon([&] { return Asked("closed") > asked; }));
  EXPECT_EQ(News("closed"), 1);
  EXPECT_EQ(poller_.Get("closed").silence, verdict::kSilence);
}

TEST_F(PagePollerTest, APodThatStartsAgainIsAnotherOne) {
  Put("closed");
  Begin("closed");
  ASSERT_TRUE(Soon([&] { return Asked("closed") >= 1; }));
  seconds_ = 40;
  ASSERT_TRUE(Soon([&] { return poller_.Get("closed").silence == absl::Seconds(40); }));
  seconds_ = 100;
  Begin("closed");
  const int asked = Asked("closed");
  ASSERT_TRUE(Soon([&] { return Asked("closed") >= asked + 2; }));
  EXPECT_EQ(poller_.Get("closed").silence, absl::ZeroDuration());
  EXPECT_EQ(News("closed"), 0);
}

TEST_F(PagePollerTest, OnlyWhoWasAskedFromItsStartHasSaidNothingElse) {
  Put("begun");
  Put("found");
  Put("late");
  Begin("begun");
  poller_.Follow("found");
  poller_.Begin("late");
  ASSERT_TRUE(Soon([&] { return Asked("begun") > 0; }));
  seconds_ = 31;
  poller_.Follow("late");
  ASSERT_TRUE(Soon([&] { return Asked("found") > 0 && Asked("late") > 0; }));
  EXPECT_TRUE(poller_.Get("begun").from_start);
  EXPECT_FALSE(poller_.Get("found").from_start);
  EXPECT_FALSE(poller_.Get("late").from_start);
}

// Nobody is left who could ask those that hang.
class FirstQuestionsTest : public PagePollerTest {
 protected:
  FirstQuestionsTest() : PagePollerTest({Pace::kFirst}) {}
};

TEST_F(FirstQuestionsTest, OfAJobOfWhichAllHangAFewAreAskedAndOthersGetTheirTurn) {
  for (int i = 0; i < 100; ++i) Put(absl::StrCat("hang", i), "unreachable");
  for (int i = 0; i < 100; ++i) Begin(absl::StrCat("hang", i));
  Put("good");
  Begin("good");
  ASSERT_TRUE(Soon([&] { return Asked("good") > 1; }));
  int asked = 0;
  for (int i = 0; i < 100; ++i) asked += Asked(absl::StrCat("hang", i));
  EXPECT_GE(asked, 4);
  EXPECT_LE(asked, 5);  // two ask at once
}

TEST_F(PagePollerTest, WhatAllReportsTakeUpIsBounded) {
  page_ = "railhead_runtime_info{rank=\"0\",job=\"j\",world_size=\"2\",trouble=\"$\"} 1\n";
  for (int rail = 0; rail < 64; ++rail) {
    absl::StrAppend(&page_, "railhead_rail_info{rank=\"0\",job=\"j\",rail=\"", rail,
                    "\",mtu=\"0\",device=\"$\",trouble=\"", std::string(500, 'x'), "\"} 1\n");
  }
  constexpr int kPods = 600;  // of 40 KiB each
  for (int i = 0; i < kPods; ++i) Put(absl::StrCat("pod", i));
  for (int i = 0; i < kPods; ++i) Begin(absl::StrCat("pod", i));
  // Some may be asked again before others are asked at all: how many answers there were is not
  // enough.
  ASSERT_TRUE(Soon([&] {
    for (int i = 0; i < kPods; ++i) {
      const PageAnswer answer = poller_.Get(absl::StrCat("pod", i));
      if (answer.from_start && answer.report == nullptr) return false;
    }
    return true;
  }));
  int kept = 0;
  for (int i = 0; i < kPods; ++i) {
    const PageAnswer answer = poller_.Get(absl::StrCat("pod", i));
    if (answer.report != nullptr) ++kept;
    // Of the others it is not known what they said.
    EXPECT_EQ(answer.from_start, answer.report != nullptr);
  }
  // They are all of one namespace, which has a half at most.
  EXPECT_GT(kept, 250);
  EXPECT_LT(kept, 450);
}

TEST_F(PagePollerTest, WhatIsCountedIsStored) {
  for (int i = 0; i < 200; ++i) {
    const std::string name = absl::StrCat("pod", i);
    // On a busy machine the pods before may have been asked again, and be counted only now.
    const auto asked_before = [&] {
      uint64_t asked = 0;
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [pod, times] : asked_) asked += pod == name ? 0 : times;
      return asked;
    };
    Put(name);
    Begin(name);
    // Soon's pause would hide what is stored late.
    const absl::Time deadline = kube::MonotonicNow() + absl::Seconds(60);
    while (poller_.Counts().ok <= asked_before() && kube::MonotonicNow() < deadline) {
    }
    ASSERT_NE(poller_.Get(name).report, nullptr);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      pods_.erase(name);
    }
    poller_.Forget(name);
  }
}

TEST_F(PagePollerTest, WhoDoesNotLeadAsksNobodyAndWhoBeginsToKnowsNothing) {
  Put("good");
  poller_.Follow("good");
  ASSERT_TRUE(Soon([&] { return poller_.Get("good").heard; }));
  leads_ = false;
  const int asked = Asked("good");
  Put("other");
  poller_.Follow("other");
  absl::SleepFor(absl::Seconds(3));     // longer than between two questions
  EXPECT_LE(Asked("good"), asked + 1);  // which was on its way
  EXPECT_EQ(Asked("other"), 0);
  poller_.ForgetAll();
  EXPECT_FALSE(poller_.Get("good").heard);
  leads_ = true;
  poller_.Follow("good");
  EXPECT_TRUE(Soon([&] { return poller_.Get("good").heard; }));
  EXPECT_EQ(News("good"), 2);
}

}  // namespace
}  // namespace railhead::op
