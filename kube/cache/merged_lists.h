// SPDX-License-Identifier: Apache-2.0
//
// Merges the collections of several namespaces into one sink, for an account that may read these
// namespaces and not the whole cluster. Used by Informer, so that a cache does not know of it.
#ifndef RAILHEAD_KUBE_CACHE_MERGED_LISTS_H_
#define RAILHEAD_KUBE_CACHE_MERGED_LISTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kube/cache/reflector.h"
#include "kube/json.h"

namespace railhead::kube {

// The sink gets one list, which ends when each source has completed its first; later lists of a
// source become puts and removals of that source's objects.
//
// Sources may be called on a thread each. The sink is called by one thread at a time.
class MergedLists {
 public:
  // `out` must outlive it. No object may be in two sources.
  MergedLists(ObjectSink* out, size_t sources);

  ObjectSink* source(size_t index) { return &sources_[index]; }

 private:
  class Source final : public ObjectSink {
   public:
    explicit Source(MergedLists* all) : all_(all) {}

    void BeginList() override;
    void Put(const Json& object) override;
    void Remove(const Json& object) override;
    void EndList() override;

   private:
    MergedLists* const all_;
    bool complete_ = false;
    uint64_t list_ = 0;
    std::map<std::string, uint64_t> known_;  // by key: the list that last contained the object
  };

  ObjectSink* const out_;
  std::mutex mutex_;  // guards all below, and calls of `out_`
  size_t incomplete_;
  bool begun_ = false;
  std::vector<Source> sources_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CACHE_MERGED_LISTS_H_
