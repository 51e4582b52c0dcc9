// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_EVENTS_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_EVENTS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/events.h"
#include "operator/gangs/gang_machine.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/turns.h"

namespace railhead::op::gangs {

// Tells people of gangs, by Events on a gang's owner, or on the first pod of one without. What is
// told already is not told again; why a gang has no room, which changes with every pod that ends
// anywhere, in turn (turns.h). Not thread-safe.
class GangEvents {
 public:
  // `clock` is the time of day. `api` must outlive this. Rights needed: create and patch events.
  GangEvents(kube::Api* api, std::string host, std::function<absl::Time()> clock);

  // Whether in this round this gang is told why it has no room.
  bool TakeTurn(const Gang& gang) { return turns_.Take(gang.key); }
  // GangWaiting; without a turn, where somebody else has chosen its nodes, once a minute at most.
  absl::Status HasNoRoom(const Gang& gang, const std::string& why);
  // GangWaiting, too; once a minute at most.
  absl::Status IsIncomplete(const Gang& gang, const std::string& why);
  absl::Status IsPlaced(const Gang& gang, const std::string& where);  // GangPlaced
  // GangBlocked, GangReplanned, GangOrdered or GangTimedOut. What is in the way of the same pod is
  // told again only if it is something else, and once a minute at most.
  absl::Status Notify(const Notice& notice);

  // All gangs that there are, by their keys, and those without room in their order. Returns when
  // the next one is to be told why.
  absl::Time EndRound(const std::set<std::string>& gangs,
                      const std::vector<std::string>& without_room);

 private:
  struct Told {
    std::string message;
    absl::Time at;
  };
  absl::Status Waits(const Gang& gang, const std::string& why);

  const std::function<absl::Time()> clock_;
  kube::EventRecorder recorder_;
  Turns turns_;
  std::map<std::string, Told> waiting_;                         // by the gang's key
  std::map<std::string, std::map<std::string, Told>> blocked_;  // likewise, and by the pod's uid
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_EVENTS_H_
