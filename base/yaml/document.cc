// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/document.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
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
#include "base/document_error.h"

namespace railhead {

// Listens to the parser. The first thing that is wrong ends it, by leaving the rest unheard.
class YamlTreeBuilder : public YAML::EventHandler {
 public:
  YamlTreeBuilder(size_t max_documents, absl::string_view source)
      : max_documents_(max_documents), source_(source) {}

  const absl::Status& status() const { return status_; }
  std::vector<YamlDocument> Take() { return std::move(documents_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp takes a comma outside of brackets for an empty document without moving past it, and
    // so for one more, until memory ends. Every other document begins behind the one before.
    if (mark.pos <= last_start_) return Fail(mark, "is not YAML: a stray ','");
    last_start_ = mark.pos;
    if (documents_.size() == max_documents_) {
      return Fail(mark, "a second document begins; keep one, and remove what follows its ---");
    }
    document_ = &documents_.emplace_back();
    anchors_.clear();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (status_.ok()) Attach(Add(mark, YamlDocument::Type::kNull), anchor);
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
    if (status_.ok()) status_ = DocumentError(source_, mark.line + 1, "", what);
  }

  uint32_t Add(const YAML::Mark& mark, YamlDocument::Type type) {
    YamlDocument::Item item;
    item.type = type;
    item.line = mark.line + 1;
    document_->items_.push_back(item);
    return static_cast<uint32_t>(document_->items_.size() - 1);
  }

  void Attach(uint32_t index, YAML::anchor_t anchor) {
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

  const size_t max_documents_;
  const absl::string_view source_;
  absl::Status status_;
  std::vector<YamlDocument> documents_;
  YamlDocument* document_ = nullptr;  // the last of them
  int last_start_ = -1;
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

namespace {

absl::StatusOr<std::vector<YamlDocument>> ParseSome(absl::string_view text,
                                                    absl::string_view source,
                                                    size_t max_documents) {
  if (text.size() > YamlDocument::kMaxText) {
    return DocumentError(
        source, 0, "",
        absl::StrCat("has more than the ", YamlDocument::kMaxText, " bytes that are allowed"));
  }
  if (const auto found = ControlCharacter(text)) {
    return DocumentError(source, found->line, "", found->what);
  }
  YamlTreeBuilder builder(max_documents, source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (builder.status().ok() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::DeepRecursion& error) {  // its own text reports a bad file
    return DocumentError(source, error.mark.line + 1, "",
                         "nests hundreds of levels deep; look for brackets that are not closed");
  } catch (const YAML::Exception& error) {  // yaml-cpp reports every defect by throwing
    return DocumentError(source, error.mark.line + 1, "",
                         absl::StrCat("is not YAML: ", ShownText(error.msg),
                                      "; check the indentation, and put texts with special "
                                      "characters in quotes"));
  }
  if (!builder.status().ok()) return builder.status();
  return builder.Take();
}

}  // namespace

absl::StatusOr<YamlDocument> YamlDocument::Parse(absl::string_view text, absl::string_view source) {
  absl::StatusOr<std::vector<YamlDocument>> documents = ParseSome(text, source, 1);
  if (!documents.ok()) return documents.status();
  YamlDocument document;
  if (!documents->empty()) document = std::move(documents->front());
  if (document.items_.empty()) document.items_.emplace_back();  // an empty text is a null
  return document;
}

absl::StatusOr<std::vector<YamlDocument>> YamlDocument::ParseAll(absl::string_view text,
                                                                 absl::string_view source) {
  absl::StatusOr<std::vector<YamlDocument>> documents =
      ParseSome(text, source, std::numeric_limits<size_t>::max());
  if (!documents.ok()) return documents.status();
  const auto is_empty = [](const YamlDocument& document) {
    return document.items_.empty() || document.root().type() == Type::kNull;
  };
  documents->erase(std::remove_if(documents->begin(), documents->end(), is_empty),
                   documents->end());
  return documents;
}

}  // namespace railhead
