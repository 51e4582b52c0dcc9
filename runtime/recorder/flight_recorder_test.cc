// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/recorder/flight_file.h"

namespace railhead::recorder {
namespace {

using collectives::Algorithm;
using collectives::Call;
using collectives::Collective;
using ::testing::HasSubstr;

constexpr int64_t Nanoseconds(int64_t second) { return (1700000000 + second) * 1'000'000'000; }
absl::Time At(int64_t second) { return absl::FromUnixNanos(Nanoseconds(second)); }

TEST(FlightRecorderTest, NothingHasHappenedAtFirst) {
  const FlightRecorder recorder;
  EXPECT_TRUE(recorder.Read().empty());
  EXPECT_FALSE(recorder.Last().has_value());
  EXPECT_EQ(recorder.collectives(), 0U);
}

TEST(FlightRecorderTest, AnOperationRunsAndEnds) {
  FlightRecorder recorder;
  const Call call({.collective = Collective::kBroadcast, .root = 1, .count = 20});
  EXPECT_EQ(recorder.Begin(Collective::kBroadcast, Algorithm::kBinomial, call, 20, Nanoseconds(1),
                           {5, 7}),
            0U);
  Operation operation = *recorder.Last();
  EXPECT_EQ(operation.sequence, 1U);
  EXPECT_EQ(operation.state, State::kRunning);
  EXPECT_EQ(operation.start, At(1));
  EXPECT_EQ(operation.moved, (Traffic{5, 7}));
  EXPECT_EQ(recorder.collectives(), 1U);

  recorder.End(State::kFailed, Nanoseconds(3), {6, 27});
  operation = *recorder.Last();
  EXPECT_EQ(operation.number, 0U);
  EXPECT_EQ(operation.collective, Collective::kBroadcast);
  EXPECT_EQ(operation.algorithm, Algorithm::kBinomial);
  EXPECT_EQ(operation.call, call);
  EXPECT_EQ(operation.bytes, 20U);
  EXPECT_EQ(operation.state, State::kFailed);
  EXPECT_EQ(operation.start, At(1));
  EXPECT_EQ(operation.end, At(3));
  EXPECT_EQ(operation.moved, (Traffic{1, 20}));
}

TEST(FlightRecorderTest, TheLastOnesAreKeptInTheirOrderAndTransfersCountApart) {
  constexpr uint64_t kAll = 3 * FlightRecorder::kKept + 17;
  FlightRecorder recorder;
  uint64_t collectives = 0;
  uint64_t transfers = 0;
  for (uint64_t i = 0; i < kAll; ++i) {
    const bool transfer = i % 3 == 0;
    const uint64_t number =
        recorder.Begin(transfer ? Collective::kSendReceive : Collective::kBarrier, Algorithm::kRing,
                       Call(), i, Nanoseconds(0), {});
    EXPECT_EQ(number, transfer ? transfers++ : collectives++);
    recorder.End(State::kDone, Nanoseconds(0), {});
  }
  EXPECT_EQ(recorder.collectives(), collectives);
  const std::vector<Operation> operations = recorder.Read();
  ASSERT_EQ(operations.size(), FlightRecorder::kKept);
  for (size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(operations[i].bytes, kAll - FlightRecorder::kKept + i);
    EXPECT_EQ(operations[i].sequence, operations[i].bytes + 1);
  }
  EXPECT_EQ(recorder.Last()->bytes, kAll - 1);
}

TEST(FlightRecorderTest, WhoReadsMeanwhileSeesWholeOperations) {
  FlightRecorder recorder;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (uint64_t i = 0; i < 300000; ++i) {
      const auto now = static_cast<int64_t>(i);
      recorder.Begin(Collective::kBarrier, Algorithm::kRing, Call(i), i, now, {i, 2 * i});
      recorder.End(State::kDone, now + 1, {3 * i, 5 * i});
    }
    done = true;
  });
  const auto check = [](const Operation& operation) {
    const uint64_t i = operation.sequence - 1;
    ASSERT_EQ(operation.number, i);
    ASSERT_EQ(operation.bytes, i);
    ASSERT_EQ(operation.call, Call(i));
    ASSERT_EQ(operation.start, absl::FromUnixNanos(i));
    const bool runs = operation.state == State::kRunning;
    ASSERT_EQ(operation.moved, (runs ? Traffic{i, 2 * i} : Traffic{2 * i, 3 * i}));
    if (!runs) {
      ASSERT_EQ(operation.end, absl::FromUnixNanos(i + 1));
    }
  };
  uint64_t latest = 0;
  while (!done) {
    if (const std::optional<Operation> last = recorder.Last(); last.has_value()) {
      check(*last);
      ASSERT_GE(last->sequence, latest);
      latest = last->sequence;
    }
    for (const Operation& operation : recorder.Read()) check(operation);
  }
  writer.join();
  EXPECT_EQ(recorder.Last()->sequence, 300000U);
}

TEST(FlightFileTest, SaysWhatIsKnown) {
  Flight flight;
  flight.job = "train \"a\"\xff";
  flight.rank = 3;
  flight.world_size = 8;
  flight.pod = "p3";
  flight.node = "n1";
  flight.transport = "tcp";
  flight.time = absl::FromUnixSeconds(1700000000);
  flight.of_day = flight.time + absl::Hours(1);
  flight.error = "rank 1 is gone";
  flight.report = "rank 1 does not answer";
  flight.rails = {"rail 0 (eth0, tcp)"};
  flight.flows = {{1, 0, {100, 200}}, {-1, 7, {}}};
  Operation done;
  done.number = 4;
  done.collective = Collective::kBroadcast;
  done.algorithm = Algorithm::kRing;
  done.call = Call({.collective = Collective::kBroadcast, .root = 1, .count = 20});
  done.bytes = 20;
  done.state = State::kDone;
  done.start = At(0);
  done.end = At(2);
  done.moved = {10, 11};
  Operation runs = done;
  runs.state = State::kRunning;
  flight.operations = {done, runs};

  const nlohmann::json json = nlohmann::json::parse(ToJson(flight));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["rank"], 3);
  EXPECT_EQ(json["world_size"], 8);
  EXPECT_EQ(json["pod"], "p3");
  EXPECT_EQ(json["node"], "n1");
  EXPECT_EQ(json["transport"], "tcp");
  EXPECT_EQ(json["time"], "2023-11-14T23:13:20.000000Z");
  EXPECT_EQ(json["error"], "rank 1 is gone");
  EXPECT_EQ(json["report"], "rank 1 does not answer");
  EXPECT_EQ(json["flows"][0],
            (nlohmann::json{
                {"peer", 1}, {"rail", "rail 0 (eth0, tcp)"}, {"sent", 100}, {"received", 200}}));
  EXPECT_TRUE(json["flows"][1]["peer"].is_null());
  const nlohmann::json& first = json["operations"][0];
  EXPECT_EQ(first["number"], 4);
  EXPECT_EQ(first["collective"], "broadcast");
  EXPECT_EQ(first["call"], "broadcast of 20 bytes, root 1");
  EXPECT_EQ(first["algorithm"], "ring");
  EXPECT_EQ(first["bytes"], 20);
  EXPECT_EQ(first["state"], "done");
  EXPECT_EQ(first["start"], "2023-11-14T23:13:20.000000Z");
  EXPECT_EQ(first["seconds"], 2.0);
  EXPECT_EQ(first["sent"], 10);
  EXPECT_EQ(first["received"], 11);
  const nlohmann::json& second = json["operations"][1];
  EXPECT_EQ(second["state"], "running");
  EXPECT_TRUE(second["seconds"].is_null());
  EXPECT_TRUE(second["sent"].is_null());
}

TEST(FlightFileTest, NamesOfFilesAreHarmless) {
  EXPECT_EQ(FileName("train-7.a", 12), "train-7.a-rank-12.json");
  EXPECT_EQ(FileName("../../etc/x y", 0), ".._.._etc_x_y-rank-0.json");
  EXPECT_LE(FileName(std::string(5000, 'x'), 0).size(), 100U);
}

TEST(FlightFileTest, IsWrittenOrTheErrorSaysWhyNot) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/flight-", ::getpid());
  ASSERT_TRUE(WriteFile(path, "first and longer").ok());
  ASSERT_TRUE(WriteFile(path, "second").ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "second");
  ::unlink(path.c_str());
  const absl::Status status = WriteFile("/nonexistent/flight", "text");
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/flight"));
}

}  // namespace
}  // namespace railhead::recorder
