// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/reflector.h"

#include <malloc.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/cache/page_size.h"
#include "kube/cache/watch.h"

namespace railhead::kube {
namespace {

// Returns whether the watch can resume at its version: a server that was unreachable or overloaded,
// or denied access, did not reject the version.
bool MayGoOn(const absl::Status& end) {
  switch (end.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

// Maximum retries of one page of a list, since without that page the earlier ones are useless. With
// pauses, that is far less than the server keeps the list's version.
constexpr int kPageRepeats = 4;

bool MayPass(const absl::Status& failed) {
  return absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed);
}

void Pause(absl::Duration pause, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock<std::mutex> lock(mutex);
  condition.wait_for(lock, stop, absl::ToChronoNanoseconds(pause), [] { return false; });
}

}  // namespace

Reflector::Reflector(ReflectorOptions options, Api* api, ObjectSink* sink, Random random,
                     std::function<absl::Time()> clock,
                     std::function<void(const absl::Status&)> on_end)
    : options_(std::move(options)),
      api_(api),
      sink_(sink),
      random_(std::move(random)),
      clock_(std::move(clock)),
      on_end_(std::move(on_end)),
      backoff_(options_.backoff, random_),
      page_size_(options_.page_size) {}

void Reflector::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) Pause(Step(stop), stop);
}

absl::Duration Reflector::Step(const std::stop_token& stop) {
  const absl::Time begin = clock_();
  if (version_.empty()) {
    const absl::Status listed = List(stop);
    page_size_ = NextPageSize(listed, page_size_, options_.page_size);
    if (listed.ok()) {
      Hear();
      listed_at_ = clock_();
      return absl::ZeroDuration();
    }
    if ((absl::IsNotFound(listed) && options_.may_be_unknown) ||
        (absl::IsPermissionDenied(listed) && options_.may_be_forbidden)) {
      sink_->BeginList();
      sink_->EndList();
      Hear();
    }
    on_end_(listed);
  } else {
    const absl::Status end = WatchOn(stop);
    on_end_(end);
    // The objects may be gone together with the right to watch them; only a list shows that.
    if (!MayGoOn(end) || (absl::IsPermissionDenied(end) && options_.may_be_forbidden)) {
      version_.clear();
      // Mostly the first answer after an outage, in which the version expired: the pauses that the
      // outage has made long are over. No more often than those are, whatever the server does.
      if (clock_() - listed_at_ > options_.backoff.longest) {
        return PauseAfter(options_.backoff, 1, random_());
      }
    }
  }
  return backoff_.After(clock_() - begin);
}

absl::StatusOr<ListPage> Reflector::ReadPage(ListOptions& list, const std::stop_token& stop) {
  for (int failures = 0;;) {
    absl::StatusOr<ListPage> page =
        ListWhatFits(*api_, options_.collection, list, [this](const Json& object) {
          sink_->Put(object);
          return absl::OkStatus();
        });
    // After the first page nothing is lost; Step pauses longer.
    if (list.go_on.empty() || !MayPass(page.status()) || failures == kPageRepeats) return page;
    page_size_ = NextPageSize(page.status(), page_size_, options_.page_size);
    list.limit = std::min(list.limit, page_size_);
    Pause(PauseAfter(options_.backoff, ++failures, random_()), stop);
    if (stop.stop_requested()) return page;
  }
}

absl::Status Reflector::List(const std::stop_token& stop) {
  sink_->BeginList();
  ListOptions list;
  list.limit = page_size_;
  do {
    const absl::StatusOr<ListPage> page = ReadPage(list, stop);
    if (!page.ok()) return page.status();
    list.go_on = page->go_on;
    // The large objects may be few: the rest is not read one by one.
    list.limit = std::min(page_size_, 2 * list.limit);
    version_ = list.go_on.empty() ? page->resource_version : "";
  } while (!list.go_on.empty());
  sink_->EndList();
#ifdef __GLIBC__
  // Each page was some megabytes of objects of which little is kept; what lies between that is not
  // given back otherwise, and a list is rare.
  malloc_trim(0);
#endif
  return absl::OkStatus();
}

absl::Status Reflector::WatchOn(const std::stop_token& stop) {
  WatchOptions watch;
  watch.resource_version = version_;
  watch.length = options_.shortest_watch * (1 + random_());
  watch.silence = options_.silence;
  watch.stop = stop;
  return Watch(*api_, options_.collection, watch,
               [this](const WatchEvent& event) { return Take(event); });
}

absl::Status Reflector::Take(const WatchEvent& event) {
  if (event.type != WatchEventType::kBookmark) {
    if (StringAt(event.object, {"metadata", "name"}).empty()) {
      return absl::DataLossError(absl::StrCat("watch ", options_.collection.ToString(),
                                              ": an object has no metadata.name"));
    }
    event.type == WatchEventType::kDeleted ? sink_->Remove(event.object) : sink_->Put(event.object);
  }
  version_ = event.resource_version;
  Hear();
  return absl::OkStatus();
}

void Reflector::Hear() {
  heard_at_nanos_.store(absl::ToUnixNanos(clock_()));
  synced_.store(true);
}

absl::Time Reflector::HeardAt() const {
  return Synced() ? absl::FromUnixNanos(heard_at_nanos_.load()) : absl::InfinitePast();
}

}  // namespace railhead::kube
