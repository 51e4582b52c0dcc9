// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_WATCH_H_
#define RAILHEAD_KUBE_WATCH_H_

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/watch_decoder.h"

namespace railhead::kube {

struct WatchOptions {
  std::string resource_version;  // what is known already: events after this one
  // After this the server ends the watch itself; whole seconds.
  absl::Duration length = absl::Minutes(5);
  // The longest time without an event or a bookmark, of which servers send one a minute. They do
  // not promise it: a silent watch may be fine, and is given up only because it may be dead.
  absl::Duration silence = absl::Minutes(3);
  std::stop_token stop;
};

// Hands on what happens to the objects of a collection, on the caller's thread, until the server
// ends the watch (OK), `on_event` returns an error (that error), or something fails:
//   OutOfRange    the server no longer has what happened since resource_version: list anew
//   DataLoss      what came was no watch
//   DeadlineExceeded, Cancelled, and the others of Api::Stream
absl::Status Watch(Api& api, const ObjectRef& collection, const WatchOptions& options,
                   const WatchDecoder::OnEvent& on_event);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_WATCH_H_
