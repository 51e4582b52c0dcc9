// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_TESTING_FAKE_API_H_
#define RAILHEAD_KUBE_TESTING_FAKE_API_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "kube/client.h"
#include "kube/json.h"

namespace railhead::kube::testing {

// An API server of a few objects, which gives every write a new resourceVersion and refuses writes
// that were decided on an older one. Watches see all writes but applied ones.
class FakeApi final : public Api {
 public:
  void Put(const ObjectRef& ref, Json object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Store(ref.Path(), std::move(object));
  }
  void Remove(const ObjectRef& ref) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Erase(ref.Path());
  }
  // Tells every watch how far it has come.
  void Bookmark() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Tell("", "BOOKMARK", {{"metadata", {{"resourceVersion", std::to_string(version_)}}}});
  }
  // Ends the watches in progress.
  void EndWatches() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }
  // Forgets what was: lists that have begun, and what happened up to now.
  void Compact() {
    const std::lock_guard<std::mutex> lock(mutex_);
    compacted_ = version_;
    happened_.clear();
    begun_.clear();
  }
  Json At(const ObjectRef& ref) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return objects_.at(ref.Path());
  }

  absl::StatusOr<Json> Call(const ApiRequest& call) override {
    ApiRequest request = call;
    request.path = request.path.substr(0, request.path.find("?timeout="));  // it is never late
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
    if (request.method == "DELETE") return Delete(request, it->first);
    if (request.method != "PATCH") return StatusFromAnswer(request.subject, 405, "");
    Json changed = it->second;
    const Json patch = Json::parse(request.body);
    if (request.content_type == "application/merge-patch+json") {
      changed.merge_patch(patch);
    } else {
      try {
        changed = changed.patch(patch);
      } catch (const Json::exception&) {  // what it tests is not so
        return StatusFromAnswer(request.subject, 422, "");
      }
    }
    if (changed["metadata"]["resourceVersion"] != it->second["metadata"]["resourceVersion"]) {
      return StatusFromAnswer(request.subject, 409, R"({"reason": "Conflict"})");
    }
    return Store(it->first, std::move(changed));
  }

  absl::Status Stream(const StreamRequest& request,
                      const std::function<absl::Status(absl::string_view)>& on_bytes) override {
    const std::string collection = request.path.substr(0, request.path.find('?'));
    const size_t from = request.path.find("resourceVersion=") + 16;
    int at = std::stoi(request.path.substr(from));
    size_t bookmarks = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    calls_.push_back("WATCH " + request.path);
    const int ended = ended_;
    for (;;) {
      if (request.stop.stop_requested()) return absl::CancelledError(request.subject);
      if (!outage_.ok()) return outage_;
      if (ended != ended_) return absl::OkStatus();
      if (at < compacted_) return StatusFromAnswer(request.subject, 410, "");
      std::vector<std::string> lines;
      for (const Happening& happening : happened_) {
        if (happening.version <= at) continue;
        if (IsIn(happening.path, collection)) lines.push_back(happening.line);
      }
      at = version_;
      if (bookmarks != bookmarks_.size()) lines.push_back(bookmarks_.back());
      bookmarks = bookmarks_.size();
      lock.unlock();
      for (const std::string& line : lines) {
        if (absl::Status taken = on_bytes(line); !taken.ok()) return taken;
      }
      lock.lock();
      if (lines.empty()) {
        changed_.wait_for(lock, request.stop, std::chrono::milliseconds(20), [] { return false; });
      }
    }
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
  static bool IsIn(const std::string& path, const std::string& collection) {
    return path.rfind('/') == collection.size() && path.rfind(collection, 0) == 0;
  }

  std::vector<Json> Below(const std::string& collection) const {
    std::vector<Json> found;
    for (const auto& [path, object] : objects_) {
      if (IsIn(path, collection)) found.push_back(object);
    }
    return found;
  }

  struct Happening {
    int version;
    std::string path;
    std::string line;
  };

  void Tell(const std::string& path, const std::string& type, const Json& object) {
    const std::string line = Json{{"type", type}, {"object", object}}.dump() + "\n";
    if (path.empty()) {
      bookmarks_.push_back(line);
    } else {
      happened_.push_back({version_, path, line});
    }
    changed_.notify_all();
  }

  const Json& Store(const std::string& path, Json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    Json& stored = objects_[path];
    Tell(path, stored.is_null() ? "ADDED" : "MODIFIED", object);
    return stored = std::move(object);
  }

  void Erase(const std::string& path) {
    const auto at = objects_.find(path);
    if (at == objects_.end()) return;
    at->second["metadata"]["resourceVersion"] = std::to_string(++version_);
    Tell(at->first, "DELETED", at->second);
    objects_.erase(at);
  }

  absl::StatusOr<Json> Delete(const ApiRequest& request, const std::string& path) {
    const Json object = objects_.at(path);
    const Json options = Json::parse(request.body);
    for (const char* field : {"uid", "resourceVersion"}) {
      const std::string wanted = StringAt(options, {"preconditions", field});
      if (!wanted.empty() && wanted != StringAt(object, {"metadata", field})) {
        return StatusFromAnswer(request.subject, 409, R"({"reason": "Conflict"})");
      }
    }
    Erase(path);
    return object;
  }

  // One object a page, whatever the limit, all of the version of the first. The token to go on with
  // holds a character that a query does not.
  absl::StatusOr<Json> Page(const std::string& path) {
    const size_t token = path.find("&continue=%2F");
    size_t at = 0;
    int serial = ++lists_;
    if (token == std::string::npos) {
      begun_[serial] = {version_, Below(path.substr(0, path.find('?')))};
    } else {
      serial = std::stoi(path.substr(token + 13));
      at = std::stoul(path.substr(path.find('.', token) + 1));
    }
    const auto begun = begun_.find(serial);
    if (begun == begun_.end()) return StatusFromAnswer("list", 410, "");
    const auto& [version, all] = begun->second;
    Json page = {{"items", Json::array()},
                 {"metadata", {{"resourceVersion", std::to_string(version)}}}};
    if (at < all.size()) page["items"].push_back(all[at]);
    if (at + 1 < all.size()) {
      page["metadata"]["continue"] = "/" + std::to_string(serial) + "." + std::to_string(at + 1);
    }
    return page;
  }

  absl::StatusOr<Json> Make(const ApiRequest& request) {
    Json object = Json::parse(request.body);
    if (constexpr absl::string_view kEviction = "/eviction";
        absl::EndsWith(request.path, kEviction)) {
      const std::string pod = request.path.substr(0, request.path.size() - kEviction.size());
      if (objects_.count(pod) == 0) return StatusFromAnswer(request.subject, 404, "");
      return Delete({"DELETE", pod, "", Json(object["deleteOptions"]).dump(), request.subject},
                    pod);
    }
    const std::string path = request.path + "/" + StringAt(object, {"metadata", "name"});
    if (objects_.count(path) > 0) {
      return StatusFromAnswer(request.subject, 409, R"({"reason": "AlreadyExists"})");
    }
    return Store(path, std::move(object));
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
  int version_ = 1;
  std::vector<Happening> happened_;
  std::vector<std::string> bookmarks_;
  int lists_ = 0;
  std::map<int, std::pair<int, std::vector<Json>>> begun_;  // lists, with their version
  int compacted_ = 0;
  int ended_ = 0;
  std::condition_variable_any changed_;
};

}  // namespace railhead::kube::testing

#endif  // RAILHEAD_KUBE_TESTING_FAKE_API_H_
