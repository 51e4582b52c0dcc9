// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/flight_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace railhead::recorder {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
// Maximum length of the part of a file's name that users choose.
constexpr size_t kGroupLimit = 80;

std::string Text(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

// `ahead`: the time of day less that of the operation's clock.
Json ToJson(const Operation& operation, absl::Duration ahead) {
  Json json;
  json["number"] = operation.number;
  json["collective"] = collectives::Name(operation.collective);
  json["call"] = operation.call.ToString();
  json["algorithm"] = collectives::Name(operation.algorithm);
  json["bytes"] = operation.bytes;
  json["state"] = Name(operation.state);
  json["start"] = Text(operation.start + ahead);
  const bool runs = operation.state == State::kRunning;
  json["seconds"] =
      runs ? Json(nullptr) : Json(absl::ToDoubleSeconds(operation.end - operation.start));
  json["sent"] = runs ? Json(nullptr) : Json(operation.moved.sent);
  json["received"] = runs ? Json(nullptr) : Json(operation.moved.received);
  return json;
}

absl::Status Error(const std::string& what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

}  // namespace

std::string ToJson(const Flight& flight) {
  Json json;
  json["format"] = kFormat;
  json["job"] = flight.job;
  json["rank"] = flight.rank;
  json["world_size"] = flight.world_size;
  json["pod"] = flight.pod;
  json["node"] = flight.node;
  json["transport"] = flight.transport;
  json["time"] = Text(flight.of_day);
  json["error"] = flight.error;
  json["report"] = flight.report;
  json["flows"] = Json::array();
  for (const Flow& flow : flight.flows) {
    json["flows"].push_back(
        {{"peer", flow.peer < 0 ? Json(nullptr) : Json(flow.peer)},
         {"rail", flow.rail < flight.rails.size() ? flight.rails[flow.rail] : ""},
         {"sent", flow.moved.sent},
         {"received", flow.moved.received}});
  }
  json["operations"] = Json::array();
  for (const Operation& operation : flight.operations) {
    json["operations"].push_back(ToJson(operation, flight.of_day - flight.time));
  }
  // Names are the users', in whatever encoding.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string FileName(absl::string_view group, int rank) {
  std::string name(group.substr(0, kGroupLimit));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  return absl::StrCat(name, "-rank-", rank, ".json");
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  const std::string draft = absl::StrCat(path, ".part");
  {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(draft.c_str(), "we"),
                                                         &std::fclose);
    if (file == nullptr) return Error("open", draft);
    if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size()) {
      return Error("write", draft);
    }
    if (std::fclose(file.release()) != 0) return Error("write", draft);
  }
  if (std::rename(draft.c_str(), path.c_str()) != 0) return Error("rename", draft);
  return absl::OkStatus();
}

}  // namespace railhead::recorder
