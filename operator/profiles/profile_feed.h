// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_FEED_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_FEED_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>

#include "operator/cluster/cluster_caches.h"
#include "operator/profiles/cluster_profiles.h"

namespace railhead::op {

// Makes the caches ready for admission, beside it: a request finds what is there, and waits for
// nobody. Changes that come together are taken together.
class ProfileFeed {
 public:
  // Subscribes to `caches`, which must outlive the feed. `on_new` is called by Run's thread when
  // there is something new.
  ProfileFeed(ClusterCaches* caches, std::function<void()> on_new);

  // Works until `stop`.
  void Run(const std::stop_token& stop);

  // Null until all caches were complete once: whoever answered then would leave profiles out.
  // Thread-safe.
  std::shared_ptr<const ClusterProfiles> Get() const;

 private:
  void Wake();  // the caches have changed; thread-safe
  void Rebuild();

  const ClusterCaches* const caches_;
  const std::function<void()> on_new_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any woken_;
  bool dirty_ = false;
  std::shared_ptr<const ClusterProfiles> current_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_FEED_H_
