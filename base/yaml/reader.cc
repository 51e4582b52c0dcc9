// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/document_error.h"
#include "base/yaml/document.h"
#include "base/yaml/scalar.h"

namespace railhead {
namespace {

using Type = YamlDocument::Type;

std::string FieldPath(absl::string_view path, absl::string_view name) {
  return absl::StrCat(path, path.empty() ? "" : ".", name);
}

}  // namespace

std::string ShownValue(YamlDocument::Value value) {
  switch (value.type()) {
    case Type::kList:
      return "a list";
    case Type::kMap:
      return "a mapping";
    case Type::kScalar:
      return value.quoted() ? QuotedText(value.text()) : ShownText(value.text());
    case Type::kNull:
      break;
  }
  return "an empty value";
}

std::optional<YamlReader::Value> YamlReader::Fields::Find(absl::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void YamlReader::Fail(Value value, absl::string_view path, absl::string_view what) {
  if (status_.ok()) status_ = DocumentError(source_, value.line(), path, what);
}

// Counts a value that is visited; false when there is no use in going on.
bool YamlReader::Visit(Value value, absl::string_view path) {
  if (++visited_ > max_values_) {
    Fail(value, path,
         absl::StrCat("the document holds more than ", max_values_,
                      " values, counting what an alias (*) stands for each time; write less"));
  }
  return status_.ok();
}

YamlReader::Fields YamlReader::FreeMapping(Value value, const std::string& path) {
  Fields fields;
  if (value.type() != Type::kMap) {
    Fail(value, path, absl::StrCat("must be a mapping, not ", ShownValue(value)));
    return fields;
  }
  fields.fields_.reserve(value.size());
  std::set<absl::string_view> seen;
  for (size_t i = 0; i < value.size(); ++i) {
    const Value key = value.key(i);
    if (!Visit(key, path)) break;
    if (key.type() != Type::kScalar) {
      Fail(key, path, absl::StrCat("has a field whose name is ", ShownValue(key)));
      break;
    }
    const absl::string_view name = key.text();
    if (!seen.insert(name).second) {
      Fail(key, FieldPath(path, ShownText(name)), "appears a second time; keep one of the two");
    } else if (value.value(i).type() == Type::kNull) {
      // Said here because the place of an empty value is the next token, some lines further down.
      Fail(key, FieldPath(path, ShownText(name)),
           "has no value; give it one, or leave the field out");
    }
    fields.fields_.emplace_back(name, value.value(i));
  }
  return fields;
}

YamlReader::Fields YamlReader::Mapping(Value value, const std::string& path, const Names& known) {
  if (value.type() != Type::kMap) {
    Fail(value, path,
         absl::StrCat("must be a mapping, not ", ShownValue(value), "; its fields are ",
                      ListedTexts(known, " and ")));
    return {};
  }
  Fields fields = FreeMapping(value, path);
  if (!status_.ok()) return fields;
  for (size_t i = 0; i < value.size(); ++i) {
    const absl::string_view name = value.key(i).text();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    Fail(value.key(i), FieldPath(path, ShownText(name)), UnknownField(name, known));
  }
  return fields;
}

std::optional<YamlReader::Value> YamlReader::Need(const Fields& fields, Value mapping,
                                                  const std::string& path, absl::string_view name,
                                                  absl::string_view hint) {
  const std::optional<Value> found = fields.Find(name);
  if (!found) Fail(mapping, FieldPath(path, name), absl::StrCat("is missing; ", hint));
  return found;
}

void YamlReader::ForEach(Value value, const std::string& path,
                         absl::FunctionRef<void(Value, const std::string&)> read) {
  if (value.type() != Type::kList) {
    Fail(value, path,
         absl::StrCat("must be a list, not ", ShownValue(value),
                      "; write each entry on a separate line after a dash, or all in [ ]"));
    return;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string item_path = absl::StrCat(path, "[", i, "]");
    if (!Visit(value.at(i), item_path)) return;
    read(value.at(i), item_path);
  }
}

void YamlReader::ForEachOfSome(Value value, const std::string& path,
                               absl::FunctionRef<void(Value, const std::string&)> read) {
  ForEach(value, path, read);
  if (value.type() == Type::kList && value.size() == 0) {
    Fail(value, path, "must have at least one entry; leave the field out to take the default");
  }
}

std::string YamlReader::Scalar(Value value, const std::string& path) {
  if (value.type() == Type::kScalar) return std::string(value.text());
  Fail(value, path, absl::StrCat("must be text, not ", ShownValue(value), "; put it in quotes"));
  return "";
}

std::string YamlReader::AnyText(Value value, const std::string& path) {
  std::string text = Scalar(value, path);
  if (value.type() == Type::kScalar && !value.quoted() &&
      (IsYamlNumber(text) || IsYamlBoolean(text))) {
    Fail(value, path,
         absl::StrCat("must be text, but without quotes ", ShownText(text), " is a ",
                      IsYamlBoolean(text) ? "boolean" : "number", "; write ", QuotedText(text)));
  }
  return text;
}

std::string YamlReader::Text(Value value, const std::string& path) {
  std::string text = AnyText(value, path);
  if (const auto fault = NameFault(text)) Fail(value, path, *fault);
  return text;
}

std::string YamlReader::Name(Value value, const std::string& path) {
  std::string text = Scalar(value, path);
  if (const auto fault = NameFault(text)) Fail(value, path, *fault);
  return text;
}

std::string YamlReader::OneOf(Value value, const std::string& path, const Names& known) {
  std::string text = Name(value, path);
  if (status_.ok() && std::find(known.begin(), known.end(), text) == known.end()) {
    const std::string meant = NearestText(text, known);
    Fail(value, path,
         absl::StrCat(QuotedText(text), " is not known here; ",
                      meant.empty() ? absl::StrCat("write ", ListedTexts(known, " or "))
                                    : absl::StrCat("did you mean ", meant, "?")));
  }
  return text;
}

int YamlReader::Integer(Value value, const std::string& path, int low, int high,
                        absl::string_view hint) {
  const bool plain = value.type() == Type::kScalar && !value.quoted();
  if (plain) {
    if (const auto number = YamlInteger(value.text(), low, high)) return *number;
  }
  Fail(value, path,
       absl::StrCat("must be a whole number from ", low, " to ", high, ", not ", ShownValue(value),
                    "; ", value.quoted() ? "write it without quotes" : hint));
  return low;
}

bool YamlReader::Boolean(Value value, const std::string& path) {
  const bool plain = value.type() == Type::kScalar && !value.quoted();
  if (!plain || (value.text() != "true" && value.text() != "false")) {
    Fail(value, path, absl::StrCat("must be true or false, not ", ShownValue(value)));
    return false;
  }
  return value.text() == "true";
}

double YamlReader::Positive(Value value, const std::string& path, absl::string_view hint) {
  double number = 0;
  if (value.type() == Type::kScalar && !value.quoted() && IsYamlNumber(value.text()) &&
      absl::SimpleAtod(value.text(), &number) && std::isfinite(number) && number > 0) {
    return number;
  }
  Fail(value, path,
       absl::StrCat("must be a number above zero, not ", ShownValue(value), "; ", hint));
  return 1;
}

std::string YamlReader::Header(const Fields& fields, Value root, absl::string_view kind) {
  constexpr absl::string_view kVersion = "railhead.io/v1alpha1";
  const auto expect = [&](const char* name, absl::string_view expected) {
    const std::optional<Value> field =
        Need(fields, root, "", name, absl::StrCat("write ", name, ": ", expected));
    if (field && Text(*field, name) != expected) {
      Fail(*field, name, absl::StrCat("must be ", expected, ", not ", ShownValue(*field)));
    }
  };
  expect("apiVersion", kVersion);
  expect("kind", kind);
  const std::optional<Value> metadata =
      Need(fields, root, "", "metadata", "write metadata: {name: ...}");
  if (!metadata) return "";
  const Fields inner = Mapping(*metadata, "metadata", {"name"});
  const std::optional<Value> name = Need(inner, *metadata, "metadata", "name", "give it a name");
  return name ? Name(*name, "metadata.name") : "";
}

}  // namespace railhead
