// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/watch.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::kube {
namespace {

// As an answer to a call (rest_client.h). etcd takes no object above 1.5 MiB, of which JSON may be
// six times as long: it escapes some characters ("\u0001").
constexpr size_t kMaxLineBytes = 16U << 20U;
// The server ends a watch in its own time; that it did not is an error only after this.
constexpr absl::Duration kOverdue = absl::Seconds(30);

}  // namespace

absl::Status Watch(Api& api, const ObjectRef& collection, const WatchOptions& options,
                   const WatchDecoder::OnEvent& on_event) {
  StreamRequest request;
  request.path = absl::StrCat(
      collection.Path(),
      "?watch=true&allowWatchBookmarks=true&resourceVersion=", Escape(options.resource_version),
      "&timeoutSeconds=", absl::ToInt64Seconds(options.length));
  request.subject = absl::StrCat("watch ", collection.ToString());
  request.timeout = options.length + kOverdue;
  request.silence = options.silence;
  request.stop = options.stop;
  WatchDecoder decoder(kMaxLineBytes);
  return api.Stream(request, [&decoder, &on_event](absl::string_view bytes) {
    return decoder.Feed(bytes, on_event);
  });
}

}  // namespace railhead::kube
