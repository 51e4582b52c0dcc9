// SPDX-License-Identifier: Apache-2.0
//
// Reports gangs by Events on the gang's owner, or on the first pod of a gang without one. Used by
// GangController.
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_EVENTS_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_EVENTS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/queue/event_queue.h"
#include "operator/gangs/gang_machine.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/turns.h"

namespace railhead::op::gangs {

// Repeats a message only after half an hour, as the API server deletes Events after an hour.
// Reasons for missing room change with each pod that ends anywhere, so gangs take turns to report
// them (turns.h). Never waits for the API server: Events go into a queue, and one that is lost
// there is repeated after a minute if its cause persists. Not thread-safe.
class GangEvents {
 public:
  // `now`: clock for intervals, that of the controller. `time_of_day`: wall clock, for the Events.
  // `api` must outlive this. Rights needed: create and patch events.
  GangEvents(kube::Api* api, std::string host, std::function<absl::Time()> now,
             const std::function<absl::Time()>& time_of_day);

  // Sends the Events; run it on a separate thread.
  kube::EventQueue& queue() { return queue_; }

  // Returns whether this gang's missing room is reported in this round.
  bool TakeTurn(const Gang& gang) { return turns_.Take(gang.key); }
  // GangWaiting. Without a turn, if others chose the nodes: at most once per minute.
  void HasNoRoom(const Gang& gang, const std::string& why);
  // GangWaiting; at most once per minute.
  void IsIncomplete(const Gang& gang, const std::string& why);
  void IsPlaced(const Gang& gang, const std::string& where);  // GangPlaced
  // GangBlocked, GangReplanned, GangOrdered or GangTimedOut. An obstacle of one pod is reported
  // again if it changes, at most once per minute, and if it lasts.
  void Notify(const Notice& notice);

  // Ends the round. `gangs`: keys of all gangs. `without_room`: in order. Returns the time of the
  // next turn, by the clock for intervals.
  absl::Time EndRound(const std::set<std::string>& gangs,
                      const std::vector<std::string>& without_room);

 private:
  struct Told {
    std::string message;
    absl::Time at;    // when it was last so
    absl::Time sent;  // when it was last reported
  };
  void Waits(const Gang& gang, const std::string& why);

  const std::function<absl::Time()> now_;
  kube::EventQueue queue_;
  Turns turns_;
  std::map<std::string, Told> waiting_;                         // by the gang's key
  std::map<std::string, std::map<std::string, Told>> blocked_;  // by gang key and pod uid
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_EVENTS_H_
