// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/runner.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/perf/pattern.h"

namespace railhead::perf {
namespace {

// How long nothing is printed before people are told that work goes on.
constexpr absl::Duration kQuiet = absl::Seconds(3);

// Enough to show that something is wrong, and small enough to be added up exactly.
constexpr uint64_t kMostWrong = 10000;

class Runner {
 public:
  Runner(rhComm_t comm, const RunOptions& options) : comm_(comm), options_(options) {}

  absl::StatusOr<Report> Run(const OnRow& on_row);

 private:
  absl::Status Error(rhResult_t result, absl::string_view what) const {
    if (result == rhSuccess) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(what, ": ", rhGetErrorString(result), ": ", rhGetLastError(comm_)));
  }

  absl::Status Begin();
  absl::Status ReadRails();
  absl::Status Once(const float* from, float* to, size_t count);
  absl::StatusOr<float> SumOverRanks(float mine);
  absl::StatusOr<Timing> Measure(uint64_t bytes, bool in_place);
  absl::StatusOr<uint64_t> Check(size_t count, bool in_place);
  void TellProgress(uint64_t bytes, int iteration, absl::Time start);

  rhComm_t comm_;
  const RunOptions& options_;
  Report report_;
  int rank_ = 0;
  uint64_t round_ = 0;
  std::vector<float> from_;
  std::vector<float> to_;
  absl::Time last_word_ = absl::Now();
};

absl::StatusOr<Report> Runner::Run(const OnRow& on_row) {
  if (absl::Status begun = Begin(); !begun.ok()) return begun;
  if (rank_ == 0) on_row(report_);
  for (const uint64_t bytes : options_.sizes) {
    Row row;
    row.bytes = bytes;
    absl::StatusOr<Timing> timing = Measure(bytes, false);
    if (!timing.ok()) return timing.status();
    row.out_of_place = *timing;
    timing = Measure(bytes, true);
    if (!timing.ok()) return timing.status();
    row.in_place = *timing;
    report_.rows.push_back(row);
    if (rank_ == 0) on_row(report_);
    last_word_ = absl::Now();
  }
  if (absl::Status read = ReadRails(); !read.ok()) return read;
  return report_;
}

absl::Status Runner::Begin() {
  report_.iterations = options_.iterations;
  report_.warmup = options_.warmup;
  absl::Status status = Error(rhCommCount(comm_, &report_.ranks), "rhCommCount");
  status.Update(Error(rhCommUserRank(comm_, &rank_), "rhCommUserRank"));
  if (!status.ok()) return status;
  if (options_.check && report_.ranks > kMostExactRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("--check knows exact answers for up to ", kMostExactRanks, " ranks"));
  }
  const size_t largest = options_.sizes.back() / sizeof(float);
  from_.resize(largest);
  to_.resize(largest);
  return ReadRails();
}

absl::Status Runner::ReadRails() {
  rhCommInfo_t info;
  info.struct_size = sizeof info;
  absl::Status status = Error(rhCommGetInfo(comm_, &info), "rhCommGetInfo");
  if (!status.ok()) return status;
  report_.transport = info.transport;
  report_.degraded_reason = info.degraded_reason;
  report_.rails.clear();
  for (int i = 0; i < info.rails; ++i) {
    rhRailInfo_t rail;
    rail.struct_size = sizeof rail;
    status = Error(rhCommRailInfo(comm_, i, &rail), "rhCommRailInfo");
    if (!status.ok()) return status;
    report_.rails.push_back(
        {rail.rail, rail.device, rail.port, rail.transport, rail.tx_bytes, rail.rx_bytes});
  }
  return absl::OkStatus();
}

absl::Status Runner::Once(const float* from, float* to, size_t count) {
  return Error(rhAllReduce(from, to, count, rhFloat32, rhSum, comm_, nullptr), "rhAllReduce");
}

absl::StatusOr<float> Runner::SumOverRanks(float mine) {
  float sum = 0;
  if (absl::Status status = Once(&mine, &sum, 1); !status.ok()) return status;
  return sum;
}

absl::StatusOr<Timing> Runner::Measure(uint64_t bytes, bool in_place) {
  const size_t count = bytes / sizeof(float);
  FillPattern(rank_, round_, absl::MakeSpan(from_).subspan(0, count));
  float* const to = in_place ? from_.data() : to_.data();
  const absl::Time begin = absl::Now();
  for (int i = 0; i < options_.warmup; ++i) {
    if (absl::Status status = Once(from_.data(), to, count); !status.ok()) return status;
    TellProgress(bytes, i - options_.warmup, begin);
  }
  // Repeated sums in place grow; zeros keep the values finite without changing the work.
  if (in_place) std::fill_n(from_.begin(), count, 0.0F);
  // All ranks start together.
  if (const absl::StatusOr<float> together = SumOverRanks(0); !together.ok()) {
    return together.status();
  }
  const absl::Time start = absl::Now();
  for (int i = 0; i < options_.iterations; ++i) {
    if (absl::Status status = Once(from_.data(), to, count); !status.ok()) return status;
    TellProgress(bytes, i + 1, begin);
  }
  const double mine = absl::ToDoubleSeconds(absl::Now() - start) / options_.iterations;
  const absl::StatusOr<float> sum = SumOverRanks(static_cast<float>(mine));
  if (!sum.ok()) return sum.status();
  Timing timing;
  timing.seconds = static_cast<double>(*sum) / report_.ranks;
  if (options_.check) {
    const absl::StatusOr<uint64_t> wrong = Check(count, in_place);
    if (!wrong.ok()) return wrong.status();
    timing.wrong = *wrong;
  }
  return timing;
}

absl::StatusOr<uint64_t> Runner::Check(size_t count, bool in_place) {
  ++round_;
  const absl::Span<float> from = absl::MakeSpan(from_).subspan(0, count);
  const absl::Span<float> to = in_place ? from : absl::MakeSpan(to_).subspan(0, count);
  FillPattern(rank_, round_, from);
  if (absl::Status status = Once(from.data(), to.data(), count); !status.ok()) return status;
  const uint64_t wrong = std::min(CountWrong(report_.ranks, round_, to), kMostWrong);
  const absl::StatusOr<float> sum = SumOverRanks(static_cast<float>(wrong));
  if (!sum.ok()) return sum.status();
  return static_cast<uint64_t>(*sum);
}

void Runner::TellProgress(uint64_t bytes, int iteration, absl::Time start) {
  const absl::Time now = absl::Now();
  if (rank_ != 0 || now - last_word_ < kQuiet) return;
  last_word_ = now;
  const std::string at = iteration <= 0
                             ? "warming up"
                             : absl::StrCat("iteration ", iteration, " of ", options_.iterations);
  std::fprintf(stderr, "railhead-perf: %llu bytes: %s, %.0f s so far\n",
               static_cast<unsigned long long>(bytes), at.c_str(),
               absl::ToDoubleSeconds(now - start));
}

}  // namespace

absl::StatusOr<Report> Run(rhComm_t comm, const RunOptions& options, const OnRow& on_row) {
  return Runner(comm, options).Run(on_row);
}

}  // namespace railhead::perf
