// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_TESTING_FAKE_API_H_
#define RAILHEAD_KUBE_TESTING_FAKE_API_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "kube/json.h"

namespace railhead::kube::testing {

// An API server of a few objects, which gives every write a new resourceVersion and refuses writes
// that were decided on an older one.
class FakeApi final : public Api {
 public:
  void Put(const ObjectRef& ref, Json object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    objects_[ref.Path()] = std::move(object);
  }
  void Remove(const ObjectRef& ref) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(ref.Path());
  }
  Json At(const ObjectRef& ref) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return objects_.at(ref.Path());
  }

  absl::StatusOr<Json> Call(const ApiRequest& request) override {
    if (request.method == "PATCH" && before_patch) std::exchange(before_patch, nullptr)();
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back(request.method + " " + request.path);
    if (!outage_.ok()) return outage_;
    if (request.method == "POST") return Make(request);
    if (request.content_type == "application/apply-patch+yaml") return Apply(request);
    if (request.path.find("?limit=") != std::string::npos) return Page(request.path);
    const auto it = objects_.find(request.path);
    if (it == objects_.end()) return StatusFromAnswer(request.subject, 404, "");
    if (request.method == "GET") return it->second;
    if (request.method != "PATCH") return StatusFromAnswer(request.subject, 405, "");
    Json changed = it->second;
    const Json patch = Json::parse(request.body);
    if (request.content_type == "application/merge-patch+json") {
      changed.merge_patch(patch);
    } else {
      changed = changed.patch(patch);
    }
    if (changed["metadata"]["resourceVersion"] != it->second["metadata"]["resourceVersion"]) {
      return StatusFromAnswer(request.subject, 409, R"({"reason": "Conflict"})");
    }
    changed["metadata"]["resourceVersion"] = std::to_string(++version_);
    return it->second = changed;
  }

  absl::Status Stream(const StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>&) override {
    return StatusFromAnswer(request.subject, 405, "");
  }

  // The objects whose path is directly below `collection`.
  std::vector<Json> In(const std::string& collection) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return Below(collection);
  }

  // The calls since the last time this was asked, as "VERB path".
  std::vector<std::string> TakeCalls() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(calls_, {});
  }
  // What every call answers until told otherwise; OK is no outage.
  void SetOutage(absl::Status outage) {
    const std::lock_guard<std::mutex> lock(mutex_);
    outage_ = std::move(outage);
  }

  // Runs once, before the next patch: somebody else gets in between. Set it before sharing the
  // server with other threads.
  std::function<void()> before_patch;

 private:
  std::vector<Json> Below(const std::string& collection) const {
    std::vector<Json> found;
    for (const auto& [path, object] : objects_) {
      if (path.rfind('/') == collection.size() && path.rfind(collection, 0) == 0) {
        found.push_back(object);
      }
    }
    return found;
  }

  // One object a page, whatever the limit. The token to go on with holds a character that a query
  // does not.
  Json Page(const std::string& path) const {
    const std::vector<Json> all = Below(path.substr(0, path.find('?')));
    const size_t token = path.find("&continue=%2F");
    const size_t at = token == std::string::npos ? 0 : std::stoul(path.substr(token + 13));
    Json page = {{"items", Json::array()}, {"metadata", Json::object()}};
    if (at < all.size()) page["items"].push_back(all[at]);
    if (at + 1 < all.size()) page["metadata"]["continue"] = "/" + std::to_string(at + 1);
    return page;
  }

  absl::StatusOr<Json> Make(const ApiRequest& request) {
    Json object = Json::parse(request.body);
    const std::string path = request.path + "/" + StringAt(object, {"metadata", "name"});
    if (objects_.count(path) > 0) {
      return StatusFromAnswer(request.subject, 409, R"({"reason": "AlreadyExists"})");
    }
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    return objects_[path] = std::move(object);
  }

  // As if nobody else wrote to the members (of the first level) that are applied.
  absl::StatusOr<Json> Apply(const ApiRequest& request) {
    Json& object = objects_[request.path.substr(0, request.path.find('?'))];
    object.update(Json::parse(request.body));
    return object;
  }

  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Json> objects_;
  std::vector<std::string> calls_;
  absl::Status outage_;
  int version_ = 0;
};

}  // namespace railhead::kube::testing

#endif  // RAILHEAD_KUBE_TESTING_FAKE_API_H_
