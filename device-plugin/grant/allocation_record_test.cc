// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/allocation_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

AllocationRecord Record(const std::string& name, int64_t minute,
                        const std::vector<std::string>& ids, const Binding& binding = {}) {
  AllocationRecord record =
      NewRecord(name, absl::ToInt64Nanoseconds(absl::Minutes(minute)), "rdma/hca", ids);
  for (const auto& [named, hca] : binding) record.binding[named] = hca;
  return record;
}

TEST(AllocationRecord, IsBoundToWhatKubeletNamedAtFirst) {
  const AllocationRecord record = NewRecord("n", 1, "rdma/hca", {"b-s1", "a-s1", "a-s0"});
  EXPECT_THAT(record.ids, ElementsAre("a-s0", "a-s1", "b-s1"));
  EXPECT_THAT(record.binding, ElementsAre(Pair("a", "a"), Pair("b", "b")));
  EXPECT_FALSE(record.settled);
  EXPECT_THAT(NewRecord("n", 1, "rdma/hca", {"a"}).binding, ElementsAre(Pair("a", "a")));
}

TEST(AllocationRecord, IsReadAsItWasWritten) {
  AllocationRecord record = Record("hca-1", 7, {"a-s0", "b-s3"}, {{"a", "c"}});
  record.settled = true;
  const absl::StatusOr<AllocationRecord> read = ParseAllocationRecord(ToJson(record));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, record);
}

TEST(AllocationRecord, RefusesWhatIsNone) {
  const std::string good = ToJson(Record("hca-1", 0, {"a-s0", "b-s3"}, {{"a", "c"}}));
  ASSERT_TRUE(ParseAllocationRecord(good).ok());
  const auto refusal = [&good](const std::string& part, const std::string& by) {
    const std::string text = absl::StrReplaceAll(good, {{part, by}});
    EXPECT_NE(text, good) << part;
    return std::string(ParseAllocationRecord(text).status().message());
  };
  EXPECT_THAT(refusal("Allocation", "Other"),
              HasSubstr("it is not a railhead.io/v1alpha1 Allocation"));
  EXPECT_THAT(refusal("v1alpha1", "v9"), HasSubstr("it is not a railhead.io/v1alpha1 Allocation"));
  EXPECT_THAT(refusal("hca-1", "../hca"), HasSubstr("name"));
  EXPECT_THAT(refusal("\"hca-1\"", "[]"), HasSubstr("name"));
  for (const char* made : {"-1", "1.5", "\"1\"", "9223372036854775807", "18446744073709551615"}) {
    EXPECT_THAT(refusal("\"made\": 0", std::string("\"made\": ") + made), HasSubstr("made"))
        << made;
  }
  EXPECT_THAT(refusal("rdma/hca", ""), HasSubstr("resource"));
  EXPECT_THAT(refusal("b-s3", "a-s0"), HasSubstr("ids"));  // twice
  EXPECT_THAT(refusal("a-s0", "z-s0"), HasSubstr("ids"));  // not in order
  EXPECT_THAT(refusal("a-s0", ""), HasSubstr("ids"));
  EXPECT_THAT(refusal("\"b-s3\"", "7"), HasSubstr("ids"));
  EXPECT_THAT(refusal("\"ids\"", "\"id\""), HasSubstr("ids"));
  EXPECT_THAT(refusal("\"a\": \"c\"", "\"a\": \"b\""), HasSubstr("hcas"));  // one HCA for two
  EXPECT_THAT(refusal("\"a\": \"c\"", "\"d\": \"c\""), HasSubstr("hcas"));
  EXPECT_THAT(refusal("\"a\": \"c\"", "\"a\": 1"), HasSubstr("hcas"));
  EXPECT_THAT(refusal("\"a\": \"c\"", "\"a\": \"\""), HasSubstr("hcas"));
  EXPECT_THAT(refusal("\"a\": \"c\",", ""), HasSubstr("hcas"));
  EXPECT_THAT(refusal("false", "0"), HasSubstr("settled"));
  for (const char* text : {"", "{", "[]", "null", "\xff", "{\"apiVersion\": 1}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAllocationRecord(text).status())) << text;
  }
  EXPECT_FALSE(ParseAllocationRecord(std::string(1 << 21, ' ')).ok());
  EXPECT_FALSE(ParseAllocationRecord(std::string(1 << 19, '[')).ok());
}

TEST(AllocationRecords, SayWhatContainersReallyHave) {
  const AllocationRecords records = {
      Record("old", 1, {"a-s0", "b-s0"}, {{"a", "x"}, {"b", "y"}}),
      Record("new", 2, {"a-s0"}, {{"a", "c"}}),
      Record("whole", 3, {"d"}),
  };
  const std::vector<ContainerDevices> listed = {
      {"ns", "p", "main", {{"rdma/hca", {"a-s0"}}, {"gpu", {"a-s0"}}}},
      {"ns", "q", "main", {{"rdma/hca", {"b-s0", "e-s1"}}}},  // as no record says: one by one
      {"ns", "r", "main", {{"rdma/hca", {"d"}}}},
  };
  const std::vector<ContainerDevices> bound = AsBound(records, listed);
  EXPECT_THAT(bound[0].devices.at("rdma/hca"), ElementsAre("c-s0"));
  EXPECT_THAT(bound[0].devices.at("gpu"), ElementsAre("a-s0"));
  EXPECT_THAT(bound[1].devices.at("rdma/hca"), ElementsAre("y-s0", "e-s1"));
  EXPECT_THAT(bound[2].devices.at("rdma/hca"), ElementsAre("d"));
  EXPECT_THAT(BoundElsewhere(records, listed, "rdma/hca"),
              ElementsAre(Pair("a-s0", "c"), Pair("b-s0", "y")));
  EXPECT_THAT(BoundElsewhere(records, listed, "gpu"), IsEmpty());
  EXPECT_THAT(BoundElsewhere({}, listed, "rdma/hca"), IsEmpty());
}

TEST(AllocationRecords, AreGoneWhenNobodyHoldsThemOrSomebodyElseDoes) {
  const AllocationRecords records = {
      Record("ended", 1, {"a-s0", "b-s0"}),  // its ids were given away again, an hour later
      Record("init", 60, {"a-s0", "b-s0"}),  // of the same pod as the next
      Record("main", 61, {"a-s0"}),
      Record("free", 62, {"c-s0"}),
  };
  const std::map<std::string, std::set<std::string>> held = {{"rdma/hca", {"a-s0", "b-s0"}},
                                                             {"rdma/other", {"c-s0"}}};
  std::vector<bool> gone;
  for (size_t i = 0; i < records.size(); ++i) gone.push_back(IsGone(records, i, held));
  EXPECT_THAT(gone, ElementsAre(true, false, false, true));
}

}  // namespace
}  // namespace railhead::device_plugin
