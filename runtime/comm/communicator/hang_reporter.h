// SPDX-License-Identifier: Apache-2.0
//
// Hang reporter of a communicator, on the watchdog's thread: detects an operation without progress,
// reports on every rank the status of all ranks, writes the flight recorder's file when the job
// fails, and logs congestion of the rails.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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
    absl::Duration timeout;  // an operation fails after this time without progress
    recorder::Flight about;  // facts of this rank; Failed adds its calls
    std::string path;        // of the file; "": no file is written
    const recorder::FlightRecorder* recorder = nullptr;  // must outlive this object
    std::function<std::vector<Flow>()> flows;            // thread-safe
    std::function<std::vector<int>()> awaited;           // peers of transfers; thread-safe
    // Tends the rails while no call is running (Mesh::Tend); thread-safe. May be null.
    std::function<void(absl::Time now)> tend;
    // See HangObserver; thread-safe. May be null.
    std::function<absl::Time(int rank)> last_sign;
    // Reads the counters of the rails' ports. Called on other threads, also after the end of this
    // object. Null: no congestion detection.
    std::function<std::vector<metrics::PortSnapshot>()> ports;
    Logger log;
  };
  explicit HangReporter(Options options);
  // Waits for the file of a failed job for a short time; its writing may continue in the
  // background.
  ~HangReporter() override;
  HangReporter(const HangReporter&) = delete;
  HangReporter& operator=(const HangReporter&) = delete;

  // Status of all ranks, queried unless a recent report exists. `waits_for_callers`: this rank
  // waits only for ranks that have not called yet. Empty if no report arrives. A rank answers if it
  // has within twice the timeout of operations, after which all are asked: on a busy machine it may
  // miss one query. Must not be called on the watchdog's thread.
  struct Heard {
    std::string text;
    bool waits_for_callers = false;
    bool all_answer = false;  // every rank has reported its status, or has left
  };
  Heard Ask(bootstrap::Watch& watch);

  Pace pace() const override { return pace_; }
  void Tend(absl::Time now) override;
  absl::Time LastSign(int rank) override;
  void Away(const std::string& name, bool away) override;
  bool Look(absl::Time now) override;
  std::string Testify(absl::Time now) override;
  std::string Conclude(const std::vector<Said>& ranks) override;
  absl::Status Verdict() override { return contradiction_; }
  void Hear(const std::string& report, absl::Time now) override;
  void Failed(const absl::Status& verdict) override;

 private:
  // Uses the last reading, and starts the next one when it is due.
  void LookAtPorts(absl::Time now);
  // Returns false if no thread can be started: then there are no counters.
  bool StartReading(absl::Time now) const;
  // What the reports come to. With the lock.
  Heard Known() const;

  const Options options_;
  const absl::Duration patience_;
  const Pace pace_;
  recorder::Stillness stillness_;
  absl::Status contradiction_;  // from the last conclusion
  Congestion congestion_;
  absl::Time next_ports_ = absl::InfinitePast();
  // One reading at a time of the ports' counters, in the background: the firmware of an adapter may
  // hang.
  struct PortReading {
    struct Result {
      std::vector<metrics::PortSnapshot> ports;
      absl::Time time;
    };
    std::mutex mutex;
    bool runs = false;
    std::optional<Result> result;  // of the last one, until it is used
  };
  const std::shared_ptr<PortReading> reading_ = std::make_shared<PortReading>();

  struct Writing {
    std::mutex mutex;
    Condition changed;
    bool done = false;
  };
  std::shared_ptr<Writing> writing_;  // the file, once its writing has started

  std::mutex mutex_;  // guards the members below
  Condition changed_;
  Heard report_;
  absl::Time heard_ = absl::InfinitePast();
  // The last report with answers of all ranks, and its time.
  bool waited_for_callers_ = false;
  absl::Time all_answered_ = absl::InfinitePast();
  bool failed_ = false;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_
