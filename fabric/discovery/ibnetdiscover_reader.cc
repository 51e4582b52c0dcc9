// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/ibnetdiscover_reader.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/document_error.h"
#include "base/printable_text.h"
#include "fabric/discovery/ibnetdiscover_line.h"
#include "fabric/discovery/observations.h"
#include "fabric/node_facts/seen_rail.h"

namespace railhead::fabric {
namespace {

constexpr size_t kMaxText = size_t{256} << 20;

class IbnetdiscoverReader {
 public:
  explicit IbnetdiscoverReader(absl::string_view source) : source_(source) {}

  absl::StatusOr<Observations> Read(absl::string_view text) {
    while (!text.empty() && status_.ok()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      ReadLine(absl::StripSuffix(text.substr(0, end), "\r"));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (status_.ok() && listed_.empty()) Fail("", "lists no switch and no HCA");
    if (status_.ok()) KeepLinks();
    if (!status_.ok()) return status_;
    return std::move(seen_);
  }

 private:
  struct Told {
    SeenLink link;
    int line = 0;
  };

  void Fail(absl::string_view field, absl::string_view what) {
    if (status_.ok()) status_ = DocumentError(source_, line_, field, what);
  }

  void ReadLine(absl::string_view text) {
    // The root user of a node sets its description, so it can contain any bytes.
    const std::string line = PrintableText(absl::StrReplaceAll(text, {{"\t", " "}}));
    const absl::string_view bare = absl::StripAsciiWhitespace(line);
    if (bare.empty()) {
      device_.clear();
      return;
    }
    if (bare[0] == '#') return;
    for (const char* word : {"vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=",
                             "rtguid=", "Non-Chassis Nodes", "Chassis "}) {
      if (absl::StartsWith(bare, word)) return;
    }
    if (bare[0] == '[') {
      ReadPort(bare);
      return;
    }
    for (const char* word : {"Switch", "Ca", "Rt"}) {
      IbLine device(bare);
      if (device.Mark(word) && !device.rest().empty() && absl::ascii_isspace(device.rest()[0])) {
        ReadDevice(word, device);
        return;
      }
    }
    Fail("", absl::StrCat(QuotedText(bare),
                          " is not a line of ibnetdiscover's output; run it without options"));
  }

  // Switch	40 "S-0002c90300123456"		# "leaf0" base port 0 lid 1 lmc 0
  void ReadDevice(absl::string_view kind, IbLine line) {
    line.Space();
    const size_t end = line.rest().find_first_of(" \t");
    int ports = 0;
    const bool counted = absl::SimpleAtoi(line.rest().substr(0, end), &ports) && ports >= 0;
    if (!counted || end == absl::string_view::npos) {
      Fail(kind, "must be followed by the number of its ports");
      return;
    }
    line.Mark(line.rest().substr(0, end));
    const std::optional<std::string> id = line.Quoted(false);
    if (!id.has_value() || id->empty()) {
      Fail(kind, "must have its GUID in quotes, as in \"S-0002c90300123456\"");
      return;
    }
    line.Space();
    line.Mark("#");
    const std::string description = line.Quoted(true).value_or("");
    if (!listed_.insert(*id).second) {
      Fail(kind, absl::StrCat(QuotedText(*id),
                              " is listed a second time; give each subnet's "
                              "output once"));
      return;
    }
    device_ = *id;
    if (kind == "Rt" || absl::StrContains(description, "Aggregation Node")) {
      left_out_.insert(*id);
      return;
    }
    SeenDevice device;
    device.id = *id;
    if (kind == "Switch") {
      device.kind = DeviceKind::kSwitch;
      device.name = description.empty() ? *id : description;
    } else {
      auto [host, hca] = HostAndHca(description);
      device.name = host;
      hca_names_[*id] = hca.empty() ? *id : hca;
    }
    seen_.devices.push_back(std::move(device));
  }

  // [1](100001) 	"S-0000000000200001"[1]		# lid 0 lmc 0 "leaf1" lid 0 4xSDR
  void ReadPort(absl::string_view text) {
    if (device_.empty()) {
      Fail("", "is a port without a device: no line with Switch, Ca or Rt precedes it");
      return;
    }
    IbLine line(text);
    const std::optional<int> near = line.Port();
    line.Guid();
    if (line.Mark("[")) {  // [ext 3]: what is printed on the switch
      const size_t end = line.rest().find(']');
      line.Mark(line.rest().substr(0, std::min(end, line.rest().size())));
      line.Mark("]");
    }
    const std::optional<std::string> device = line.Quoted(false);
    const std::optional<int> far = line.Port();
    if (!near.has_value() || !far.has_value() || !device.has_value() || device->empty()) {
      Fail("port",
           absl::StrCat("must be as in [1] \"S-0002c90300123456\"[2], with ports from 1 to ",
                        kMaxIbPort, ", not ", QuotedText(text)));
      return;
    }
    Told told;
    told.line = line_;
    told.link.near = {device_, absl::StrCat(*near)};
    told.link.far = {*device, absl::StrCat(*far)};
    told.link.evidence = Evidence::kInfiniBand;
    told.link.gbps = LinkGbps(line.rest());
    told.link.where = absl::StrCat(source_, ":", line_);
    told_.push_back(std::move(told));
  }

  // Each cable is listed at both ends; both must agree, and one is kept.
  void KeepLinks() {
    std::map<SeenEnd, SeenEnd> cable;
    for (Told& told : told_) {
      line_ = told.line;
      SeenLink& link = told.link;
      if (listed_.count(link.far.device) == 0) {
        Fail("port", absl::StrCat(QuotedText(link.far.device),
                                  " is not listed in the text; check that it is complete"));
        return;
      }
      const bool known = cable.count(link.near) > 0 && cable[link.near] == link.far;
      for (const auto& [end, other] : {std::pair(link.near, link.far), {link.far, link.near}}) {
        const auto [there, is_new] = cable.emplace(end, other);
        if (is_new || there->second == other) continue;
        Fail("port", absl::StrCat("port ", end.port, " of ", QuotedText(end.device), " leads to ",
                                  QuotedText(other.device), " here and to ",
                                  QuotedText(there->second.device),
                                  " above; a port has one "
                                  "cable, so run ibnetdiscover again"));
        return;
      }
      if (known || left_out_.count(link.near.device) + left_out_.count(link.far.device) > 0) {
        continue;
      }
      for (SeenEnd* end : {&link.near, &link.far}) {
        const auto hca = hca_names_.find(end->device);
        if (hca == hca_names_.end()) continue;
        end->port = end->port == "1" ? hca->second : absl::StrCat(hca->second, ":", end->port);
      }
      seen_.links.push_back(std::move(link));
    }
  }

  absl::string_view source_;
  absl::Status status_;
  Observations seen_;
  int line_ = 0;
  std::string device_;  // to which the next port lines belong
  std::unordered_set<std::string> listed_;
  std::unordered_set<std::string> left_out_;
  std::map<std::string, std::string> hca_names_;
  std::vector<Told> told_;
};

}  // namespace

bool IsIbnetdiscover(absl::string_view text) {
  const absl::string_view begin = text.substr(0, 4096);
  return absl::StrContains(begin, "switchguid=") || absl::StrContains(begin, "caguid=") ||
         absl::StrContains(begin, "# Topology file:");
}

absl::StatusOr<Observations> ReadIbnetdiscover(absl::string_view text, absl::string_view source) {
  if (text.size() > kMaxText) {
    return DocumentError(source, 0, "",
                         absl::StrCat("has more than the ", kMaxText, " bytes that are allowed"));
  }
  return IbnetdiscoverReader(source).Read(text);
}

}  // namespace railhead::fabric
