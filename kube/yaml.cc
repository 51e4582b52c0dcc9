// SPDX-License-Identifier: Apache-2.0
#include "kube/yaml.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/document_error.h"
#include "base/yaml/document.h"

namespace railhead::kube {
namespace {

// Aliases let a small text stand for an enormous or even endless document.
constexpr int kMaxValues = 200'000;
constexpr int kMaxDepth = 64;

bool AllDigits(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Numbers as both YAML and JSON write them: -12, 3.5, 1e9. What YAML alone calls a number (0x1f,
// 0777, .inf) stays a string, so that no reader of ours can disagree with another's.
bool LooksLikeNumber(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const size_t whole_end = text.find_first_not_of("0123456789");
  const absl::string_view whole = text.substr(0, whole_end);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) return false;
  if (whole_end == absl::string_view::npos) return true;
  absl::string_view rest = text.substr(whole_end);
  if (rest[0] == '.') {
    rest.remove_prefix(1);
    const size_t fraction_end = rest.find_first_not_of("0123456789");
    if (fraction_end == 0 || rest.empty()) return false;
    if (fraction_end == absl::string_view::npos) return true;
    rest = rest.substr(fraction_end);
  }
  if (rest[0] != 'e' && rest[0] != 'E') return false;
  rest.remove_prefix(1);
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  return AllDigits(rest);
}

using Value = YamlDocument::Value;
using Type = YamlDocument::Type;

Json ScalarToJson(Value value) {
  const absl::string_view text = value.text();
  if (value.quoted()) return std::string(text);
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (LooksLikeNumber(text)) {
    int64_t integer = 0;
    if (absl::SimpleAtoi(text, &integer)) return integer;
    double real = 0;
    if (absl::SimpleAtod(text, &real) && real <= 1e308 && real >= -1e308) return real;
  }
  return std::string(text);
}

class Converter {
 public:
  explicit Converter(absl::string_view source) : source_(source) {}

  absl::StatusOr<Json> Convert(Value value, int depth) {
    if (++values_ > kMaxValues || depth > kMaxDepth) {
      return ErrorAt(value, "is too large or nests too deep");
    }
    switch (value.type()) {
      case Type::kNull:
        return Json(nullptr);
      case Type::kScalar:
        return ScalarToJson(value);
      case Type::kList: {
        Json list = Json::array();
        for (size_t i = 0; i < value.size(); ++i) {
          absl::StatusOr<Json> item = Convert(value.at(i), depth + 1);
          if (!item.ok()) return item.status();
          list.push_back(*std::move(item));
        }
        return list;
      }
      case Type::kMap:
        break;
    }
    Json object = Json::object();
    for (size_t i = 0; i < value.size(); ++i) {
      const Value key = value.key(i);
      if (key.type() != Type::kScalar) return ErrorAt(key, "a key must be a plain scalar");
      absl::StatusOr<Json> member = Convert(value.value(i), depth + 1);
      if (!member.ok()) return member.status();
      if (!object.emplace(std::string(key.text()), *std::move(member)).second) {
        return ErrorAt(key, absl::StrCat("key ", QuotedText(key.text()), " appears twice"));
      }
    }
    return object;
  }

 private:
  absl::Status ErrorAt(Value value, absl::string_view what) const {
    return DocumentError(source_, value.line(), "", what);
  }

  absl::string_view source_;
  int values_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Json>> ParseYaml(absl::string_view text, absl::string_view source) {
  const absl::StatusOr<std::vector<YamlDocument>> documents = YamlDocument::ParseAll(text, source);
  if (!documents.ok()) return documents.status();
  std::vector<Json> objects;
  Converter converter(source);
  for (const YamlDocument& document : *documents) {
    absl::StatusOr<Json> object = converter.Convert(document.root(), 0);
    if (!object.ok()) return object.status();
    if (!object->is_null()) objects.push_back(*std::move(object));
  }
  return objects;
}

}  // namespace railhead::kube
