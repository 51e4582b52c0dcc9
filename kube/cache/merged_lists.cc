// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/merged_lists.h"

#include "kube/cache/cache.h"

namespace railhead::kube {
namespace {

// An object of which a sink needs no more than its key.
Json ObjectOf(const std::string& key) {
  const size_t slash = key.find('/');
  Json metadata = {{"name", slash == std::string::npos ? key : key.substr(slash + 1)}};
  if (slash != std::string::npos) metadata["namespace"] = key.substr(0, slash);
  return {{"metadata", std::move(metadata)}};
}

}  // namespace

MergedLists::MergedLists(ObjectSink* out, size_t sources)
    : out_(out), incomplete_(sources), sources_(sources, Source(this)) {}

void MergedLists::Source::BeginList() {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  ++list_;
  if (all_->begun_) return;
  all_->begun_ = true;
  all_->out_->BeginList();
}

void MergedLists::Source::Put(const Json& object) {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  known_[KeyOf(object)] = list_;
  all_->out_->Put(object);
}

void MergedLists::Source::Remove(const Json& object) {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  known_.erase(KeyOf(object));
  all_->out_->Remove(object);
}

void MergedLists::Source::EndList() {
  const std::lock_guard<std::mutex> lock(all_->mutex_);
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second == list_) {
      ++at;
      continue;
    }
    all_->out_->Remove(ObjectOf(at->first));
    at = known_.erase(at);
  }
  if (complete_) return;
  complete_ = true;
  if (--all_->incomplete_ == 0) all_->out_->EndList();
}

}  // namespace railhead::kube
