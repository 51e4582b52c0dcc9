// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/runner.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/perf/layout.h"
#include "runtime/perf/numbers.h"
#include "runtime/perf/pattern.h"

namespace railhead::perf {
namespace {

// Time without output after which progress is printed.
constexpr absl::Duration kQuiet = absl::Seconds(3);

// The measurement in progress, the same for all its operations.
struct Work {
  const Kind& kind;
  const Pattern& pattern;
  uint64_t bytes;
  size_t count;  // values in a part
  Parts parts;   // of this rank
};

// Memory that an operation reads and writes.
struct Buffers {
  std::byte* send;
  size_t send_count;  // values
  std::byte* receive;
};

// A buffer: from anywhere, or in a window of the communicator's.
class Memory {
 public:
  Memory(rhComm_t comm, bool in_window) : comm_(comm), in_window_(in_window) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { rhMemFree(shared_); }

  // Zeros. Called by all ranks, once.
  absl::Status Get(size_t bytes) {
    if (!in_window_) {
      own_.resize(bytes);
      return absl::OkStatus();
    }
    if (rhMemAlloc(&shared_, bytes) != rhSuccess) {
      return absl::ResourceExhaustedError(rhGetLastError(nullptr));
    }
    rhWindow_t window = nullptr;
    if (rhCommWindowRegister(comm_, shared_, bytes, &window, 0) != rhSuccess) {
      return absl::UnavailableError(rhGetLastError(comm_));
    }
    return absl::OkStatus();
  }
  std::byte* data() { return in_window_ ? static_cast<std::byte*>(shared_) : own_.data(); }

 private:
  rhComm_t comm_;
  bool in_window_;
  std::vector<std::byte> own_;
  void* shared_ = nullptr;
};

class Runner {
 public:
  Runner(rhComm_t comm, const RunOptions& options)
      : comm_(comm),
        options_(options),
        collective_(*options.collective),
        from_(comm, options.in_windows),
        to_(comm, options.in_windows) {}

  absl::StatusOr<Report> Run(const OnRow& on_row);

 private:
  absl::Status Error(rhResult_t result, absl::string_view what) const {
    if (result == rhSuccess) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(what, ": ", rhGetErrorString(result), ": ", rhGetLastError(comm_)));
  }

  absl::Status Begin();
  absl::Status Prepare();
  absl::Status ReadRails();
  absl::StatusOr<std::vector<uint64_t>> SizesOf(const Kind& kind) const;
  uint64_t Unit(const Kind& kind) const {
    return kind.type->bytes * collective_.SizeInValues(report_.ranks, 1);
  }
  absl::Status Pass(const OnRow& on_row);
  absl::StatusOr<bool> Enough();
  absl::StatusOr<Row> MeasureRow(const Kind& kind, const Pattern& pattern, uint64_t bytes);
  Buffers BuffersOf(const Work& work, bool in_place);
  absl::Status Once(const Work& work, const Buffers& buffers);
  absl::StatusOr<double> SumOverRanks(double mine);
  absl::StatusOr<Timing> Measure(const Work& work, bool in_place);
  absl::StatusOr<uint64_t> Check(const Work& work, const Buffers& buffers);
  void TellProgress(uint64_t bytes, int iteration, absl::Time start);

  rhComm_t comm_;
  const RunOptions& options_;
  const Collective& collective_;
  Report report_;
  int rank_ = 0;
  uint64_t round_ = 0;
  Memory from_;
  Memory to_;
  absl::Time last_word_ = MonotonicNow();
};

absl::StatusOr<Report> Runner::Run(const OnRow& on_row) {
  if (absl::Status begun = Begin(); !begun.ok()) return begun;
  if (rank_ == 0) on_row(report_);
  for (bool last = false; !last;) {
    if (absl::Status passed = Pass(on_row); !passed.ok()) return passed;
    const absl::StatusOr<bool> enough = Enough();
    if (!enough.ok()) return enough.status();
    last = *enough;
  }
  if (absl::Status read = ReadRails(); !read.ok()) return read;
  return report_;
}

// All kinds and sizes, once.
absl::Status Runner::Pass(const OnRow& on_row) {
  if (options_.before_pass) options_.before_pass();
  for (const Kind& kind : options_.kinds) {
    const Pattern pattern(*kind.type, kind.op, report_.ranks, rank_);
    const absl::StatusOr<std::vector<uint64_t>> sizes = SizesOf(kind);
    if (!sizes.ok()) return sizes.status();
    for (const uint64_t bytes : *sizes) {
      absl::StatusOr<Row> row = MeasureRow(kind, pattern, bytes);
      if (!row.ok()) return row.status();
      report_.rows.push_back(*std::move(row));
      if (rank_ == 0) on_row(report_);
      last_word_ = MonotonicNow();
    }
  }
  return absl::OkStatus();
}

// Returns true if the last pass is done: rank 0 decides for all.
absl::StatusOr<bool> Runner::Enough() {
  if (!options_.enough) return true;
  const absl::StatusOr<double> sum = SumOverRanks(rank_ == 0 && options_.enough() ? 1 : 0);
  if (!sum.ok()) return sum.status();
  return *sum > 0;
}

absl::Status Runner::Begin() {
  report_.collective = options_.collective;
  report_.root = options_.root;
  report_.iterations = options_.iterations;
  report_.warmup = options_.warmup;
  absl::Status status = Error(rhCommCount(comm_, &report_.ranks), "rhCommCount");
  status.Update(Error(rhCommUserRank(comm_, &rank_), "rhCommUserRank"));
  status.Update(Prepare());
  if (!status.ok()) return status;
  return ReadRails();
}

// Checks options against the number of ranks, and allocates memory for it.
absl::Status Runner::Prepare() {
  if (collective_.has_root && options_.root >= report_.ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "root ", options_.root, " does not exist; ranks go from 0 to ", report_.ranks - 1));
  }
  uint64_t largest = 0;
  const auto note = [](std::string& all, const char* name) {
    all = all.empty() || all == name ? name : kAll;
  };
  for (const Kind& kind : options_.kinds) {
    const absl::StatusOr<std::vector<uint64_t>> sizes = SizesOf(kind);
    if (!sizes.ok()) return sizes.status();
    largest = std::max(largest, sizes->back());
    note(report_.type, collective_.has_data() ? kind.type->name : kNone);
    note(report_.redop, kind.op != nullptr ? kind.op->name : kNone);
    if (!options_.check || kind.op == nullptr) continue;
    if (absl::Status known = IsKnown(*kind.type, *kind.op, report_.ranks); !known.ok()) {
      return known;
    }
  }
  for (Memory* memory : {&from_, &to_}) {
    absl::Status status = memory->Get(std::max<uint64_t>(largest, 1));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
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

absl::StatusOr<std::vector<uint64_t>> Runner::SizesOf(const Kind& kind) const {
  if (!collective_.has_data()) return std::vector<uint64_t>{0};
  return Sizes(options_.sizes, Unit(kind));
}

absl::StatusOr<Row> Runner::MeasureRow(const Kind& kind, const Pattern& pattern, uint64_t bytes) {
  const size_t count = bytes / Unit(kind);
  const Work work = {kind, pattern, bytes, count,
                     PartsOf(collective_.movement, report_.ranks, rank_, count)};
  Row row;
  row.bytes = bytes;
  row.count = count;
  row.type = collective_.has_data() ? kind.type->name : kNone;
  row.redop = kind.op != nullptr ? kind.op->name : kNone;
  absl::StatusOr<Timing> timing = Measure(work, false);
  if (!timing.ok()) return timing.status();
  row.out_of_place = *timing;
  if (!collective_.in_place) return row;
  timing = Measure(work, true);
  if (!timing.ok()) return timing.status();
  row.in_place = *timing;
  return row;
}

Buffers Runner::BuffersOf(const Work& work, bool in_place) {
  const Movement& movement = collective_.movement;
  Buffers buffers = {from_.data(), Values(movement.send, movement, work.parts, rank_, work.count),
                     in_place ? from_.data() : to_.data()};
  if (in_place) {
    std::byte*& smaller = movement.send == Shape::kOne ? buffers.send : buffers.receive;
    smaller += InPlaceOffset(movement, work.parts, rank_) * work.kind.type->bytes;
  }
  return buffers;
}

absl::Status Runner::Once(const Work& work, const Buffers& buffers) {
  const rhRedOp_t op = work.kind.op != nullptr ? work.kind.op->value : rhSum;
  return Error(
      collective_.call({buffers.send, buffers.receive, work.count, work.parts,
                        work.kind.type->value, op, options_.root, rank_, report_.ranks, comm_}),
      collective_.name);
}

absl::StatusOr<double> Runner::SumOverRanks(double mine) {
  double sum = 0;
  const rhResult_t result = rhAllReduce(&mine, &sum, 1, rhFloat64, rhSum, comm_, nullptr);
  if (result != rhSuccess) return Error(result, "rhAllReduce");
  return sum;
}

absl::StatusOr<Timing> Runner::Measure(const Work& work, bool in_place) {
  const Buffers buffers = BuffersOf(work, in_place);
  work.pattern.Fill(round_, buffers.send_count, buffers.send);
  // Values reduced in place repeatedly would grow; zeros stay zero, and are the same work.
  if (in_place && collective_.reduces()) std::fill_n(from_.data(), work.bytes, std::byte{0});
  const absl::Time begin = MonotonicNow();
  for (int i = 0; i < options_.warmup; ++i) {
    if (absl::Status status = Once(work, buffers); !status.ok()) return status;
    TellProgress(work.bytes, i - options_.warmup, begin);
  }
  // All ranks start together.
  if (const absl::StatusOr<double> together = SumOverRanks(0); !together.ok()) {
    return together.status();
  }
  const absl::Time start = MonotonicNow();
  for (int i = 0; i < options_.iterations; ++i) {
    if (absl::Status status = Once(work, buffers); !status.ok()) return status;
    TellProgress(work.bytes, i + 1, begin);
  }
  const absl::StatusOr<double> sum =
      SumOverRanks(absl::ToDoubleSeconds(MonotonicNow() - start) / options_.iterations);
  if (!sum.ok()) return sum.status();
  Timing timing;
  timing.seconds = *sum / report_.ranks;
  if (options_.check) {
    const absl::StatusOr<uint64_t> wrong = Check(work, buffers);
    if (!wrong.ok()) return wrong.status();
    timing.wrong = *wrong;
  }
  return timing;
}

absl::StatusOr<uint64_t> Runner::Check(const Work& work, const Buffers& buffers) {
  ++round_;
  work.pattern.Fill(round_, buffers.send_count, buffers.send);
  if (absl::Status status = Once(work, buffers); !status.ok()) return status;
  const std::vector<Piece> pieces =
      Received(collective_.movement, report_.ranks, rank_, options_.root, work.count);
  // Exact as a double.
  const uint64_t wrong = work.pattern.CountWrong(round_, pieces, buffers.receive);
  const absl::StatusOr<double> sum = SumOverRanks(static_cast<double>(wrong));
  if (!sum.ok()) return sum.status();
  return static_cast<uint64_t>(*sum);
}

void Runner::TellProgress(uint64_t bytes, int iteration, absl::Time start) {
  const absl::Time now = MonotonicNow();
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
