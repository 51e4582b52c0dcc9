// SPDX-License-Identifier: Apache-2.0
#include "kube/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <exception>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

// Aliases let a small text stand for an enormous or even endless document.
constexpr int kMaxNodes = 200'000;
constexpr int kMaxDepth = 64;

absl::Status ErrorAt(const YAML::Mark& mark, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", mark.line + 1, ": ", what));
}

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

Json ScalarToJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return text;  // quoted
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
  return text;
}

class Converter {
 public:
  absl::StatusOr<Json> Convert(const YAML::Node& node, int depth) {
    if (++nodes_ > kMaxNodes || depth > kMaxDepth) {
      return ErrorAt(node.Mark(), "the document is too large or nests too deep");
    }
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Json(nullptr);
      case YAML::NodeType::Scalar:
        return ScalarToJson(node);
      case YAML::NodeType::Sequence: {
        Json list = Json::array();
        for (const YAML::Node& item : node) {
          absl::StatusOr<Json> value = Convert(item, depth + 1);
          if (!value.ok()) return value.status();
          list.push_back(*std::move(value));
        }
        return list;
      }
      case YAML::NodeType::Map:
        break;
    }
    Json object = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        return ErrorAt(entry.first.Mark(), "a key must be a plain scalar");
      }
      absl::StatusOr<Json> value = Convert(entry.second, depth + 1);
      if (!value.ok()) return value.status();
      if (!object.emplace(entry.first.Scalar(), *std::move(value)).second) {
        return ErrorAt(entry.first.Mark(),
                       absl::StrCat("key \"", entry.first.Scalar(), "\" appears twice"));
      }
    }
    return object;
  }

 private:
  int nodes_ = 0;
};

// yaml-cpp takes a comma outside of brackets for an empty document without moving past it, and so
// for one more, until memory ends. Every other document begins behind the one before.
class Progress : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    stuck_ = mark.pos <= mark_.pos;
    mark_ = mark;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  bool stuck() const { return stuck_; }
  const YAML::Mark& mark() const { return mark_; }

 private:
  bool stuck_ = false;
  YAML::Mark mark_ = YAML::Mark::null_mark();  // its position is -1
};

absl::Status CheckProgress(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Progress progress;
  while (parser.HandleNextDocument(progress)) {
    if (progress.stuck()) return ErrorAt(progress.mark(), "not valid YAML: a stray ','");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Json>> ParseYaml(absl::string_view text) {
  try {
    const std::string copy(text);
    if (absl::Status checked = CheckProgress(copy); !checked.ok()) return checked;
    std::vector<Json> documents;
    Converter converter;
    for (const YAML::Node& node : YAML::LoadAll(copy)) {
      absl::StatusOr<Json> document = converter.Convert(node, 0);
      if (!document.ok()) return document.status();
      if (!document->is_null()) documents.push_back(*std::move(document));
    }
    return documents;
  } catch (const YAML::Exception& error) {  // yaml-cpp reports every defect by throwing
    return ErrorAt(error.mark, absl::StrCat("not valid YAML: ", error.msg));
  }
}

}  // namespace railhead::kube
