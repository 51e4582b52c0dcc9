// SPDX-License-Identifier: Apache-2.0
//
// Hang reporter of a communicator, on the watchdog's thread: detects an operation without progress,
// reports on every rank the status of all ranks, fails the job if a rank that others wait for does
// not answer, writes the flight recorder's file when the job fails, and logs congestion of the
// rails.
//
// Time from the moment in which a rank stops until the job fails, for a timeout T. Another rank
// waits for it or begins to.
//
//   T/48 + T/16  A waiting rank checks its progress each T/48, and requests a query if its
//                operation has not moved for T/16, then every T/16. The stopped rank counts as
//                unresponsive from the first query that it does not answer (silence_).
//   T            It does not answer for the timeout. A late answer would end this time.
//   T/48         The querying rank checks each T/48 if this time has reached the timeout.
//   ------------
//   1.11 T       Total. If the root itself stops, its children judge, and need the same
//                times.
//
// If a rank answers each query too late, and then stops, its last answer counts for the next
// query, which may take T/24 more than the pause of T/16: 1.21 T.
//
// A query ends after T/24 at most: each level of the tree waits T/24 / height longer than the one
// below it. A rank that answers later is alive; until then its last known position counts.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_

#include <cstdint>
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
#include "runtime/recorder/silence.h"

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
    // Returns the state of rhIsend and rhIrecv transfers, for the query of that number;
    // thread-safe. May be null.
    std::function<recorder::StillTransfers(absl::Time now, uint32_t query)> transfers;
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

  // Queries all ranks. Returns true if this rank waits only for ranks that have not called yet, or
  // if no report arrives, because ranks do not answer: if that lasts, the job fails. An earlier
  // report will not do: a rank that had only just called then may be late now. Must not be called
  // on the watchdog's thread, like the next one.
  bool WaitsForCallers(bootstrap::Watch& watch);
  // Returns the status of all ranks, for people. Queries them, unless a recent report exists.
  std::string Report(bootstrap::Watch& watch);
  // Returns the ranks with which this rank's transfers are stuck, by the last report.
  // Thread-safe.
  std::vector<int> StuckWith() const;

  Pace pace() const override { return pace_; }
  absl::Time LastSign(int rank) override;
  void Away(const std::string& name, bool away) override;
  bool Look(absl::Time now) override;
  std::string Testify(absl::Time now, uint32_t query) override;
  std::string Conclude(const std::vector<Said>& ranks, absl::Time asked, absl::Time now) override;
  absl::Status Verdict() override { return verdict_; }
  void Hear(const std::string& report, absl::Time now) override;
  void Failed(const absl::Status& verdict) override;

 private:
  // Uses the last reading, and starts the next one when it is due.
  void LookAtPorts(absl::Time now);
  // Returns false if no thread can be started: then there are no counters.
  bool StartReading(absl::Time now) const;
  recorder::StillTransfers Transfers(absl::Time now, uint32_t query) const;
  // Fails the job if a rank has not answered for the timeout.
  void JudgeSilence(absl::Time now);
  // Waits for a report that comes from now on.
  void Query(bootstrap::Watch& watch);
  bool IsRecent(absl::Time now) const { return now - heard_ < options_.timeout / 4; }

  const Options options_;
  const absl::Duration patience_;
  const Pace pace_;
  recorder::Stillness stillness_;
  recorder::Silence silence_;
  absl::Status verdict_;     // from the last conclusion, or from JudgeSilence
  std::string conclusion_;   // report of the last conclusion
  bool concluded_ = false;   // the next report is this rank's own
  absl::Duration next_log_;  // of a conclusion, after this time without progress
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

  mutable std::mutex mutex_;  // guards the members below
  Condition changed_;
  // From the last report.
  std::string text_;
  bool waits_for_callers_ = false;
  std::vector<int> stuck_with_;
  std::string logged_;
  absl::Time heard_ = absl::InfinitePast();
  bool failed_ = false;
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_HANG_REPORTER_H_
