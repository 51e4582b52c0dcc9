// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::recorder {
namespace {

using collectives::Algorithm;
using collectives::Call;
using collectives::Collective;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A rank in (or done with) a collective of this number.
Seen In(int rank, uint64_t number, State state = State::kRunning, double still = 5) {
  Seen seen;
  seen.name = absl::StrCat("rank ", rank, " (pod p", rank, ")");
  seen.how = Seen::How::kAnswered;
  seen.position.collectives = number + 1;
  Doing& last = seen.position.last.emplace();
  last.number = number;
  last.collective = Collective::kBroadcast;
  last.algorithm = Algorithm::kRing;
  last.call = Call({.collective = Collective::kBroadcast, .root = 1, .count = 20});
  last.state = state;
  last.moved = {12 << 20, 1000};
  last.age = absl::Seconds(8);
  last.still = absl::Seconds(still);
  return seen;
}

Seen Silent(int rank, Seen::How how = Seen::How::kSilent) {
  Seen seen;
  seen.name = absl::StrCat("rank ", rank, " (pod p", rank, ")");
  seen.how = how;
  return seen;
}

TEST(ReportTest, TwoRanksAreToldInFull) {
  Seen waiting = In(0, 5);
  waiting.position.last->way = Way{false, 1, "rail 1 (eth1, tcp)"};
  EXPECT_EQ(Report({waiting, In(1, 4, State::kDone)}),
            "rank 1 (pod p1) has not called number 5 (its last was number 4, broadcast of 20 "
            "bytes, root 1 (ring), done 8.0 s ago); rank 0 (pod p0) is in number 5, broadcast of "
            "20 bytes, root 1 (ring): sent 12.0 MiB and received 1000 B, nothing for 5.0 s; the "
            "last to rank 1 over rail 1 (eth1, tcp)");
}

TEST(ReportTest, OneOfManyIsNamedAndTheOthersCounted) {
  std::vector<Seen> ranks;
  for (int rank = 0; rank < 256; ++rank) {
    ranks.push_back(rank == 77 ? In(rank, 1233, State::kDone) : In(rank, 1234));
  }
  ranks[200].position.last->still = absl::Seconds(6);
  const std::string report = Report(ranks);
  EXPECT_THAT(report, AllOf(StartsWith("rank 77 (pod p77) has not called number 1234 (its last was "
                                       "number 1233, "),
                            HasSubstr("; the other 255 are in number 1234, broadcast of 20 bytes, "
                                      "root 1 (ring), of which rank 200 (pod p200) stopped first: "
                                      "sent 12.0 MiB")));
}

TEST(ReportTest, WhereAllAreTogetherTheFirstToStopIsNamed) {
  EXPECT_THAT(Report({In(0, 5), In(1, 5, State::kRunning, 7), In(2, 5)}),
              StartsWith("all 3 ranks are in number 5, broadcast of 20 bytes, root 1 (ring), of "
                         "which rank 1 (pod p1) stopped first: sent 12.0 MiB and received 1000 B, "
                         "nothing for 7.0 s"));
}

TEST(ReportTest, SilenceComesFirstAndWhoWasNotAskedLast) {
  const std::string report =
      Report({In(0, 5), In(1, 5), In(2, 5), Silent(3), Silent(4, Seen::How::kNotAsked)});
  EXPECT_THAT(report, AllOf(StartsWith("rank 3 (pod p3) does not answer (stopped, or cut off from "
                                       "the others); the other 3 are in number 5"),
                            EndsWith("; 1 could not be queried: no connection to them")));
}

TEST(ReportTest, WhoHasLeftComesAfterWhoIsSilent) {
  const Seen::How left = Seen::How::kLeft;
  EXPECT_THAT(Report({In(0, 5), In(1, 5), In(2, 5), Silent(3), Silent(4, left)}),
              HasSubstr("others); rank 4 (pod p4) has left the communicator; the other 3 are in "));
  EXPECT_THAT(Report({In(0, 5), Silent(1, left), Silent(2, left)}),
              StartsWith("rank 1 (pod p1) and rank 2 (pod p2) have left the communicator; "));
}

TEST(ReportTest, PlacesComeInTheOrderFromThoseBehind) {
  Seen new_one = Silent(4);
  new_one.how = Seen::How::kAnswered;
  const std::string report =
      Report({In(0, 6), In(1, 6), In(2, 6), In(3, 5), new_one, In(5, 5, State::kFailed)});
  const size_t nothing = report.find("rank 4 (pod p4) has called nothing");
  const size_t inside = report.find("rank 3 (pod p3) is in number 5");
  const size_t failed = report.find("rank 5 (pod p5) has not called number 6");
  const size_t others = report.find("the other 3 are in number 6");
  EXPECT_EQ(nothing, 0U);
  EXPECT_LT(nothing, inside);
  EXPECT_LT(inside, failed);
  EXPECT_LT(failed, others);
  EXPECT_NE(others, std::string::npos);
}

TEST(ReportTest, SeveralAreNamedTogetherUpToAFew) {
  std::vector<Seen> ranks;
  for (int rank = 0; rank < 30; ++rank) {
    ranks.push_back(rank < 12 ? In(rank, 4, State::kDone) : In(rank, 5));
  }
  EXPECT_THAT(Report(ranks),
              StartsWith("rank 0 (pod p0), rank 1 (pod p1), rank 2 (pod p2), rank 3 (pod p3) and 8 "
                         "more have not called number 5 (their last was number 4, "));
}

TEST(ReportTest, TransfersHaveNumbersOfTheirOwn) {
  Seen sending = In(0, 5);
  sending.position.last->collective = Collective::kSendReceive;
  sending.position.last->call = Call({.collective = Collective::kSendReceive});
  sending.position.last->number = 99;
  EXPECT_THAT(Report({sending, In(1, 5)}),
              AllOf(HasSubstr("rank 0 (pod p0) is in send_receive number 99: "),
                    HasSubstr("rank 1 (pod p1) is in number 5, ")));
}

TEST(ReportTest, MessagesThatAreNotDeliveredAreNamedAndTheOthersCounted) {
  std::vector<Seen> ranks = {In(0, 5), In(1, 5), In(2, 5), In(3, 5)};
  ranks[0].position.transfers.under_way = {{1}, 1};
  EXPECT_THAT(Report(ranks), StartsWith("messages between rank 0 (pod p0) and rank 1 are not "
                                        "delivered; all 4 ranks are in number 5"));
  ranks[1].position.transfers.under_way = {{2, 3}, 70};
  ranks[2].position.transfers.under_way = {{1}, 1};
  EXPECT_THAT(
      Report(ranks),
      StartsWith("messages between rank 0 (pod p0) and rank 1, and messages between rank 1 "
                 "(pod p1) and rank 2 and 69 more, and those of 1 more ranks are not delivered"));
}

TEST(ReportTest, WhoeverSaysWhateverTheTextStaysShort) {
  std::vector<Seen> ranks;
  for (int rank = 0; rank < 300; ++rank) {
    ranks.push_back(rank % 7 == 0 ? Silent(rank) : In(rank, static_cast<uint64_t>(rank)));
    ranks.back().name = std::string(600, 'x');
    if (ranks.back().position.last.has_value()) {
      ranks.back().position.last->way = Way{true, rank, std::string(96, 'y')};
    }
  }
  const std::string report = Report(ranks);
  EXPECT_LE(report.size(), kReportLimit);
  EXPECT_THAT(report, HasSubstr("other places are left out"));
  EXPECT_EQ(Report({}), "");
}

}  // namespace
}  // namespace railhead::recorder
