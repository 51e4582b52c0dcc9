// SPDX-License-Identifier: Apache-2.0
//
// One watch of a collection: a request whose response is a stream of events. Used by Reflector,
// which starts the next watch or a new list.
#ifndef RAILHEAD_KUBE_CACHE_WATCH_H_
#define RAILHEAD_KUBE_CACHE_WATCH_H_

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/cache/watch_decoder.h"
#include "kube/client.h"

namespace railhead::kube {

struct WatchOptions {
  std::string resource_version;  // start: events after this version
  // The server ends the watch after this time, in whole seconds.
  absl::Duration length = absl::Minutes(5);
  // Maximum time without an event or a bookmark; servers send a bookmark about once a minute. They
  // do not guarantee it: a watch without either is replaced because it may be dead.
  absl::Duration silence = absl::Minutes(3);
  std::stop_token stop;
};

// Passes on the events of a collection, on the caller's thread, until the server ends the watch
// (OK), `on_event` returns an error (that error), or something fails:
//   OutOfRange    the server no longer has events since resource_version: list again
//   DataLoss      the response is not a watch
//   DeadlineExceeded, Cancelled, and the other errors of Api::Stream
absl::Status Watch(Api& api, const ObjectRef& collection, const WatchOptions& options,
                   const WatchDecoder::OnEvent& on_event);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CACHE_WATCH_H_
