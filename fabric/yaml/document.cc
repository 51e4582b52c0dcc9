// SPDX-License-Identifier: Apache-2.0
#include "fabric/yaml/document.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fabric/yaml/message.h"

namespace railhead::fabric {

// Listens to the parser. The first thing that is wrong ends it, by leaving the rest unheard.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  YamlTreeBuilder(YamlDocument* document, absl::string_view source)
      : document_(document), source_(source) {}

  const absl::Status& status() const { return status_; }
  int documents() const { return documents_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2)
      Fail(mark, "a second document begins; keep one, and remove what follows its ---");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Attach(Add(mark, YamlDocument::Type::kNull), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!status_.ok()) return;
    const uint32_t index = Add(mark, YamlDocument::Type::kScalar);
    YamlDocument::Item& item = document_->items_[index];
    item.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    item.first = static_cast<uint32_t>(document_->text_.size());
    item.count = static_cast<uint32_t>(value.size());
    document_->text_ += value;
    Attach(index, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!status_.ok()) return;
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end() || open_.empty()) {
      return Fail(mark,
                  "an alias (*) stands for a value that holds the alias itself; write it out");
    }
    open_.back().children.push_back(it->second);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, YamlDocument::Type::kList, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, YamlDocument::Type::kMap, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Collection {
    uint32_t index = 0;
    YAML::anchor_t anchor = 0;
    std::vector<uint32_t> children;
  };

  void Fail(const YAML::Mark& mark, absl::string_view what) {
    if (status_.ok()) status_ = YamlError(source_, mark.line + 1, "", what);
  }

  uint32_t Add(const YAML::Mark& mark, YamlDocument::Type type) {
    YamlDocument::Item item;
    item.type = type;
    item.line = mark.line + 1;
    document_->items_.push_back(item);
    return static_cast<uint32_t>(document_->items_.size() - 1);
  }

  void Attach(uint32_t index, YAML::anchor_t anchor) {
    if (!status_.ok()) return;
    if (anchor != 0) anchors_[anchor] = index;
    if (open_.empty()) {
      document_->root_ = index;
    } else {
      open_.back().children.push_back(index);
    }
  }

  void Open(const YAML::Mark& mark, YamlDocument::Type type, YAML::anchor_t anchor) {
    if (status_.ok()) open_.push_back({Add(mark, type), anchor, {}});
  }

  void Close() {
    if (!status_.ok()) return;
    const Collection done = std::move(open_.back());
    open_.pop_back();
    YamlDocument::Item& item = document_->items_[done.index];
    item.first = static_cast<uint32_t>(document_->children_.size());
    item.count = static_cast<uint32_t>(done.children.size());
    document_->children_.insert(document_->children_.end(), done.children.begin(),
                                done.children.end());
    // Known only now that it is whole: an alias inside of it finds nothing.
    Attach(done.index, done.anchor);
  }

  YamlDocument* document_;
  absl::string_view source_;
  absl::Status status_;
  int documents_ = 0;
  std::vector<Collection> open_;
  std::map<YAML::anchor_t, uint32_t> anchors_;
};

absl::string_view YamlDocument::Value::text() const {
  return absl::string_view(document_->text_).substr(item().first, item().count);
}

YamlDocument::Value YamlDocument::Value::child(size_t i) const {
  return {document_, document_->children_[item().first + i]};
}
YamlDocument::Value YamlDocument::Value::at(size_t i) const { return child(i); }
YamlDocument::Value YamlDocument::Value::key(size_t i) const { return child(2 * i); }
YamlDocument::Value YamlDocument::Value::value(size_t i) const { return child(2 * i + 1); }

absl::StatusOr<YamlDocument> YamlDocument::Parse(absl::string_view text, absl::string_view source) {
  if (text.size() > kMaxText) {
    return YamlError(source, 0, "",
                     absl::StrCat("has more than the ", kMaxText, " bytes that are allowed"));
  }
  if (const auto found = ControlCharacter(text)) {
    return YamlError(source, found->line, "", found->what);
  }
  YamlDocument document;
  YamlTreeBuilder builder(&document, source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (builder.status().ok() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::DeepRecursion& error) {  // whose own text speaks of a bad file
    return YamlError(source, error.mark.line + 1, "",
                     "nests hundreds of levels deep; look for brackets that are not closed");
  } catch (const YAML::Exception& error) {  // yaml-cpp reports every defect by throwing
    return YamlError(source, error.mark.line + 1, "",
                     absl::StrCat("is not YAML: ", ShownText(error.msg),
                                  "; check the indentation, and put texts with special characters "
                                  "in quotes"));
  }
  if (!builder.status().ok()) return builder.status();
  if (document.items_.empty()) document.items_.emplace_back();  // an empty text is a null
  return document;
}

}  // namespace railhead::fabric
