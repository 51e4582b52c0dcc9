// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/insistence.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace railhead::transport {
namespace {

constexpr absl::Duration kStep = absl::Milliseconds(100);

TEST(InsistenceTest, ItEndsAfterItsPatienceAndBeginsAnewLater) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Insistence insistence;
    const absl::Time begin = absl::UnixEpoch() + absl::Milliseconds(random() % 100000);
    // However often it is asked.
    for (absl::Time now = begin; now < begin + absl::Minutes(3);
         now += absl::Milliseconds(random() % 2000)) {
      const absl::Duration since = now - begin;
      const bool insists = insistence.Insists("peer", true, now);
      if (since < Insistence::kPatience) {
        EXPECT_TRUE(insists) << since;
      }
      if (since >= Insistence::kPatience && since < Insistence::kMemory) {
        EXPECT_FALSE(insists) << since;
      }
    }
  }
}

TEST(InsistenceTest, WhatHasWorkedIsInsistedOnForEver) {
  Insistence insistence;
  absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(insistence.Insists("peer", true, now));
  EXPECT_TRUE(insistence.Insists("other", true, now));
  now += Insistence::kPatience;
  EXPECT_FALSE(insistence.Insists("peer", true, now));
  insistence.Works("peer");
  EXPECT_TRUE(insistence.Insists("peer", true, now));
  EXPECT_TRUE(insistence.Insists("peer", true, now + absl::Hours(9)));
  EXPECT_FALSE(insistence.Insists("other", true, now));
}

// Nothing is learnt from attempts without a carrier.
TEST(InsistenceTest, TheTimeWithoutACarrierDoesNotCount) {
  Insistence insistence;
  absl::Time now = absl::UnixEpoch();
  for (; now < absl::UnixEpoch() + absl::Seconds(30); now += kStep) {
    EXPECT_TRUE(insistence.Insists("peer", false, now));
  }
  EXPECT_TRUE(insistence.Insists("peer", true, now + Insistence::kPatience - 2 * kStep));
  EXPECT_FALSE(insistence.Insists("peer", true, now + Insistence::kPatience));
}

TEST(InsistenceTest, ItsMemoryIsBounded) {
  Insistence insistence;
  const absl::Time now = absl::UnixEpoch();
  for (size_t i = 0; i < Insistence::kMostAddresses; ++i) {
    ASSERT_TRUE(insistence.Insists(absl::StrCat(i), true, now));
  }
  EXPECT_FALSE(insistence.Insists("one more", true, now));
  EXPECT_TRUE(insistence.Insists("0", true, now));
}

}  // namespace
}  // namespace railhead::transport
