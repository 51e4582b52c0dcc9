// SPDX-License-Identifier: Apache-2.0
//
// Looks after a communicator from the watch's thread: notices when an operation stands still, says
// on every rank who is where, and leaves the flight recorder's file behind when the job fails. And
// it says when the rails meet congestion.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/condition.h"
#include "runtime/base/log.h"
#include "runtime/base/traffic.h"
#include "runtime/bootstrap/hang_observer.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/comm/communicator/congestion.h"
#include "runtime/metrics/snapshot.h"
#include "runtime/recorder/flight_file.h"
#include "runtime/recorder/flight_recorder.h"
#include "runtime/recorder/position.h"

namespace railhead::comm {

class HangReporter final : public bootstrap::HangObserver {
 public:
  struct Options {
    absl::Duration timeout;  // after which an operation that stands still fails
    recorder::Flight about;  // this rank, without what it has done
    std::string path;        // of the file; "": there is none
    const recorder::FlightRecorder* recorder = nullptr;  // outlives this
    std::function<std::vector<Flow>()> flows;            // any thread
    std::function<std::vector<int>()> awaited;           // peers of transfers; any thread
    // Looks after messages that are not acknowledged while no call is running; any thread. Null:
    // there are none.
    std::function<void(absl::Time now)> tend;
    // What the rails' ports have counted, read now; any thread. Null: nobody looks at them.
    std::function<std::vector<metrics::PortSnapshot>()> ports;
    Logger log;
  };
  explicit HangReporter(Options options);
  // Gives the file of a failed job a moment to be written, which may go on in the background.
  ~HangReporter() override;
  HangReporter(const HangReporter&) = delete;
  HangReporter& operator=(const HangReporter&) = delete;

  // What everybody is doing, asked anew unless that is known from a moment ago, and whether this
  // rank only waits for some that have not called yet. "" and false when nobody says. Not for the
  // watch's thread.
  struct Heard {
    std::string text;
    bool waits_for_callers = false;
    bool all_answer = false;  // whether every rank has said what it is doing
  };
  Heard Ask(bootstrap::Watch& watch);

  Pace pace() const override { return pace_; }
  bool Look(absl::Time now) override;
  std::string Testify(absl::Time now) override;
  std::string Conclude(const std::vector<Said>& ranks) override;
  absl::Status Verdict() override { return contradiction_; }
  void Hear(const std::string& report, absl::Time now) override;
  void Failed(const absl::Status& verdict) override;

 private:
  const Options options_;
  const absl::Duration patience_;
  const Pace pace_;
  recorder::Stillness stillness_;
  absl::Status contradiction_;  // of what was last concluded
  Congestion congestion_;
  absl::Time next_ports_ = absl::InfinitePast();

  struct Writing {
    std::mutex mutex;
    Condition changed;
    bool done = false;
  };
  std::shared_ptr<Writing> writing_;  // the file, if one is begun

  std::mutex mutex_;  // guards what follows
  Condition changed_;
  Heard report_;
  absl::Time heard_ = absl::InfinitePast();
  bool failed_ = false;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_
