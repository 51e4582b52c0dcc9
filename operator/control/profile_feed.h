// SPDX-License-Identifier: Apache-2.0
//
// Prepares the cached objects for admission in a separate thread, so that requests never wait. Used
// by the controllers.
#ifndef RAILHEAD_OPERATOR_CONTROL_PROFILE_FEED_H_
#define RAILHEAD_OPERATOR_CONTROL_PROFILE_FEED_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>

#include "operator/cluster/cluster_caches.h"
#include "operator/cluster/cluster_profiles.h"

namespace railhead::op {

// Collects several changes into one update.
class ProfileFeed {
 public:
  // Subscribes to `caches`, which must outlive the feed. `on_new` is called on Run's thread after
  // each update.
  ProfileFeed(ClusterCaches* caches, std::function<void()> on_new);

  // Runs until `stop`.
  void Run(const std::stop_token& stop);

  // Returns null until all caches were complete once, since admission would miss profiles before.
  // Thread-safe.
  std::shared_ptr<const ClusterProfiles> Get() const;

 private:
  void Wake();  // called when the caches change; thread-safe
  void Rebuild();

  const ClusterCaches* const caches_;
  const std::function<void()> on_new_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any woken_;
  bool dirty_ = false;
  std::shared_ptr<const ClusterProfiles> current_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_PROFILE_FEED_H_
