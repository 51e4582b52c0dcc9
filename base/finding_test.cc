// SPDX-License-Identifier: Apache-2.0
#include "base/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/testing/finding_checks.h"

namespace railhead {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Finding kRate = {Severity::kWarn, "rate", "rail 1", "100 Gb/sec", "reseat the cable"};
const Finding kTransport = {Severity::kOk, "transport", "all 3 ranks", "verbs", ""};

TEST(FindingTest, BothPrintersShowTheSame) {
  ExpectWhole(kRate);
  ExpectWhole(kTransport);
  ExpectWhole({Severity::kNote, "port", "\x1b[2J", "a\nb\u202e", "say \"x\"\t\\n"});
  ExpectWhole({Severity::kFail, "port", "\xff", "\xc3(", "read it"});
}

TEST(FindingTest, ATableHasAColumnForTheCheckAndTheFixBelow) {
  EXPECT_EQ(FindingsTable({kTransport, kRate}),
            "ok    transport  all 3 ranks: verbs\n"
            "WARN  rate       rail 1: 100 Gb/sec\n"
            "                 fix: reseat the cable\n");
  EXPECT_EQ(FindingsTable({}), "");
  EXPECT_THAT(FindingsTable({kRate}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(FindingsTable({kRate}, true), HasSubstr("\x1b[33mWARN\x1b[0m  rate"));
}

TEST(FindingTest, TheRestOfACheckIsCounted) {
  EXPECT_EQ(FindingsTable({kRate, kRate, kTransport, kRate, kRate}, false, 2),
            "WARN  rate       rail 1: 100 Gb/sec\n"
            "                 fix: reseat the cable\n"
            "WARN  rate       rail 1: 100 Gb/sec\n"
            "                 fix: reseat the cable\n"
            "ok    transport  all 3 ranks: verbs\n"
            "                 and 2 more; -o json shows all\n");
}

TEST(FindingTest, TheWorstSeverityIsThatOfAll) {
  EXPECT_EQ(Worst({}), Severity::kOk);
  EXPECT_EQ(Worst({kTransport, kRate, kTransport}), Severity::kWarn);
  EXPECT_EQ(Count({kTransport, kRate, kTransport}, Severity::kOk), 2U);
}

}  // namespace
}  // namespace railhead
