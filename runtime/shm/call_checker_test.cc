// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/call_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/shm/segment.h"
#include "runtime/testing/ranks.h"

namespace railhead::shm {
namespace {

using collectives::Call;
using collectives::Collective;
using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

Call BroadcastOf(size_t bytes) {
  return Call({.collective = Collective::kBroadcast, .count = bytes});
}

class CallCheckerTest : public ::testing::Test {
 protected:
  CallCheckerTest() {
    for (int rank = 0; rank < 3; ++rank) {
      checkers_.push_back(
          std::make_unique<CallChecker>(segment_.data(), rank, std::vector{10, 20, 30}));
    }
  }
  absl::Status Post(int rank, Call call) {
    return checkers_[static_cast<size_t>(rank)]->Post(call);
  }

 private:
  Segment segment_ = *Segment::Create(CallChecker::Bytes(3));
  std::vector<std::unique_ptr<CallChecker>> checkers_;
};

TEST_F(CallCheckerTest, TheLaterOneLearnsWhoCalledWhat) {
  EXPECT_TRUE(Post(2, BroadcastOf(1)).ok());
  EXPECT_TRUE(Post(1, BroadcastOf(1)).ok());
  EXPECT_TRUE(Post(2, BroadcastOf(2)).ok()) << "rank 0 has not come that far";
  EXPECT_TRUE(Post(0, BroadcastOf(1)).ok());
  const absl::Status wrong = Post(0, BroadcastOf(3));
  EXPECT_TRUE(absl::IsInternal(wrong));
  EXPECT_THAT(std::string(wrong.message()), AllOf(HasSubstr("rank 30 calls broadcast of 2 bytes"),
                                                  HasSubstr("this rank broadcast of 3 bytes")));
}

TEST_F(CallCheckerTest, WhoIsFarAheadHasForgotten) {
  for (size_t i = 0; i < 100; ++i) EXPECT_TRUE(Post(0, BroadcastOf(i)).ok());
  for (size_t i = 0; i < 36; ++i) EXPECT_TRUE(Post(1, BroadcastOf(7)).ok());
  EXPECT_FALSE(Post(1, BroadcastOf(7)).ok());
}

// At the same time, as far apart as they get: nobody is accused wrongly.
TEST_F(CallCheckerTest, AtAnyPace) {
  const auto wrong = RunRanks(3, [&](int rank) {
    int errors = 0;
    for (size_t i = 0; i < 200000; ++i) errors += Post(rank, BroadcastOf(i)).ok() ? 0 : 1;
    return errors;
  });
  EXPECT_EQ(wrong, std::vector<int>(3, 0));
}

}  // namespace
}  // namespace railhead::shm
