// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_settings.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "operator/objects/fields.h"

namespace railhead::op {
namespace {

using kube::Json;
using Kind = ProfileSetting::Kind;

constexpr char kDebugLevels[] = "VERSION|WARN|INFO|TRACE|ABORT";
constexpr char kUcxLevels[] = "fatal|error|warn|info|debug|trace";
constexpr char kSharpLevels[] = "fatal=0|error=1|warn=2|info=3|debug=4|trace=5";

// A name of Linux has at most 15 bytes.
constexpr size_t kLongestInterface = 15;
constexpr size_t kLongestText = 1024;
constexpr size_t kLongestLibraries = 512;

constexpr auto kSettings = std::to_array<ProfileSetting>({
    {"nccl", "gdrLevel", "NCCL_NET_GDR_LEVEL", Kind::kWord, 0, 0, "LOC|PIX|PXB|PHB|SYS"},
    {"nccl", "gdrRead", "NCCL_NET_GDR_READ", Kind::kSwitch},
    {"nccl", "trafficClass", "NCCL_IB_TC", Kind::kInteger, 0, 255},
    {"nccl", "serviceLevel", "NCCL_IB_SL", Kind::kInteger, 0, 15},
    {"nccl", "qpsPerConnection", "NCCL_IB_QPS_PER_CONNECTION", Kind::kInteger, 1, 128},
    {"nccl", "crossNic", "NCCL_CROSS_NIC", Kind::kInteger, 0, 2},
    {"nccl", "socketInterface", "NCCL_SOCKET_IFNAME", Kind::kInterfaces},
    {"nccl", "addressFamily", "NCCL_IB_ADDR_FAMILY", Kind::kWord, 0, 0,
     "IPv4=AF_INET|IPv6=AF_INET6"},
    {"nccl", "roceVersion", "NCCL_IB_ROCE_VERSION_NUM", Kind::kInteger, 1, 2},
    {"nccl", "bufferSize", "NCCL_BUFFSIZE", Kind::kInteger, 4096, 1073741824},
    {"nccl", "debug", "NCCL_DEBUG", Kind::kWord, 0, 0, kDebugLevels},
    {"nccl", "collnet", "NCCL_COLLNET_ENABLE", Kind::kSwitch},
    {"nccl", "collnetMinNodes", "NCCL_COLLNET_NODE_THRESHOLD", Kind::kInteger, 2, 65536},
    {"nccl", "collnetPlugin", "NCCL_NET_PLUGIN", Kind::kLibraries, 0, 0, "", "", true},
    {"nccl", "sharpLogLevel", "SHARP_COLL_LOG_LEVEL", Kind::kWord, 0, 0, kSharpLevels},
    {"ucx", "transports", "UCX_TLS", Kind::kTransports},
    {"ucx", "trafficClass", "UCX_IB_TRAFFIC_CLASS", Kind::kInteger, 0, 255, "",
     "nccl.trafficClass"},
    {"ucx", "serviceLevel", "UCX_IB_SL", Kind::kInteger, 0, 15, "", "nccl.serviceLevel"},
    {"ucx", "maxRails", "UCX_MAX_RNDV_RAILS", Kind::kInteger, 1, 16},
    {"ucx", "logLevel", "UCX_LOG_LEVEL", Kind::kWord, 0, 0, kUcxLevels},
    {"gloo", "socketInterface", "GLOO_SOCKET_IFNAME", Kind::kInterfaces, 0, 0, "",
     "nccl.socketInterface"},
    {"railhead", "transport", "RAILHEAD_TRANSPORT", Kind::kWord, 0, 0, "auto|verbs|tcp|shm"},
    {"railhead", "socketInterface", "RAILHEAD_SOCKET_IFNAME", Kind::kInterfaces, 0, 0, "",
     "nccl.socketInterface"},
    {"railhead", "trafficClass", "RAILHEAD_IB_TC", Kind::kInteger, 0, 255, "", "nccl.trafficClass"},
    {"railhead", "serviceLevel", "RAILHEAD_IB_SL", Kind::kInteger, 0, 15, "", "nccl.serviceLevel"},
    {"railhead", "qpsPerRail", "RAILHEAD_IB_QPS_PER_RAIL", Kind::kInteger, 1, 8},
    {"railhead", "partitionKey", "RAILHEAD_IB_PKEY", Kind::kPartitionKey},
    {"railhead", "timeoutSeconds", "RAILHEAD_TIMEOUT_SECONDS", Kind::kInteger, 1, 86400},
    {"railhead", "algorithms", "RAILHEAD_ALGO", Kind::kText},
    {"railhead", "log", "RAILHEAD_LOG", Kind::kWord, 0, 0, "error|warn|info|debug"},
});

// Returns the words of a setting, each with the variable's value for it.
std::vector<std::pair<absl::string_view, absl::string_view>> Words(const ProfileSetting& setting) {
  std::vector<std::pair<absl::string_view, absl::string_view>> words;
  for (const absl::string_view entry : absl::StrSplit(setting.words, '|')) {
    const size_t sign = entry.find('=');
    words.emplace_back(entry.substr(0, sign),
                       sign == absl::string_view::npos ? entry : entry.substr(sign + 1));
  }
  return words;
}

bool IsInterface(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestInterface &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                  c == '.';
         });
}

bool IsTransport(absl::string_view name) {
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '_';
  });
}

// Names between commas, perhaps with '^' in front of all.
bool IsNameList(absl::string_view text, bool (*is_name)(absl::string_view)) {
  if (absl::StartsWith(text, "^")) text.remove_prefix(1);
  const std::vector<absl::string_view> names = absl::StrSplit(text, ',');
  return text.size() <= kLongestText && std::all_of(names.begin(), names.end(), is_name);
}

bool IsPartitionKey(absl::string_view text) {
  uint32_t key = 0;
  // The highest bit is the kind of member, the others the partition, which is never number 0.
  return absl::StartsWith(text, "0x") && text.size() >= 3 && text.size() <= 6 &&
         absl::SimpleHexAtoi(text, &key) && (key & 0x7fffU) != 0;
}

bool IsLibraryList(absl::string_view text) {
  const std::vector<absl::string_view> names = absl::StrSplit(text, ',');
  return text.size() <= kLongestLibraries &&
         std::all_of(names.begin(), names.end(), [](absl::string_view name) {
           return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
             return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                    absl::string_view("._+/-").find(c) != absl::string_view::npos;
           });
         });
}

bool IsPrintable(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestText &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

std::string ProfileSetting::Name() const { return absl::StrCat(section, ".", field); }

absl::Span<const ProfileSetting> ProfileSettings() { return kSettings; }

absl::StatusOr<std::string> ReadSetting(const ProfileSetting& setting, const Json& value,
                                        absl::string_view path) {
  if (setting.kind == Kind::kSwitch) {
    if (!value.is_boolean()) return FieldError(path, "must be true or false");
    return value.get<bool>() ? "true" : "false";
  }
  if (setting.kind == Kind::kInteger) {
    const absl::StatusOr<int64_t> number = ReadInteger(value, path, setting.min, setting.max);
    if (!number.ok()) return number.status();
    return absl::StrCat(*number);
  }
  absl::StatusOr<std::string> text = ReadString(value, path);
  if (!text.ok()) return text.status();
  switch (setting.kind) {
    case Kind::kWord: {
      std::vector<absl::string_view> allowed;
      for (const auto& [said, set] : Words(setting)) {
        if (said == *text) return text;
        allowed.push_back(said);
      }
      return FieldError(path, absl::StrCat("must be one of ", absl::StrJoin(allowed, ", ")));
    }
    case Kind::kInterfaces:
      if (IsNameList(*text, IsInterface)) return text;
      return FieldError(path,
                        "must be names of network interfaces such as eth0,eth1; a leading '^' "
                        "excludes them");
    case Kind::kTransports:
      if (IsNameList(*text, IsTransport)) return text;
      return FieldError(
          path, "must be names of transports such as rc,sm,self; a leading '^' excludes them");
    case Kind::kPartitionKey:
      if (IsPartitionKey(*text)) return text;
      return FieldError(path, "must be a P_Key such as 0x8001, from 0x1 to 0xffff");
    case Kind::kLibraries:
      if (IsLibraryList(*text)) return text;
      return FieldError(path,
                        "must be the name of a plugin such as sharp, or its path such as "
                        "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so");
    case Kind::kText:
      if (IsPrintable(*text)) return text;
      return FieldError(path, absl::StrCat("must be 1 to ", kLongestText,
                                           " printable characters without spaces"));
    case Kind::kSwitch:
    case Kind::kInteger:
      break;  // read above
  }
  return text;
}

std::string VariableValue(const ProfileSetting& setting, const std::string& said) {
  switch (setting.kind) {
    case Kind::kSwitch:
      return said == "true" ? "1" : "0";
    case Kind::kWord:
      for (const auto& [word, set] : Words(setting)) {
        if (word == said) return std::string(set);
      }
      return said;
    case Kind::kInterfaces:
      // NCCL takes a plain name for the beginning of many: eth1 is eth10 as well.
      if (absl::string_view(setting.section) == "nccl") {
        return said[0] == '^' ? absl::StrCat("^=", said.substr(1)) : absl::StrCat("=", said);
      }
      return said[0] == '^' ? "" : said;
    default:
      return said;
  }
}

}  // namespace railhead::op
