// SPDX-License-Identifier: Apache-2.0
#include "mpi/attributes.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace railhead::mpi {
namespace {

Outcome OutcomeOfProgram(int result, const char* what, int key) {
  if (result == kSuccess) return {};
  return {result, std::string("the program's ") + what + " function of attribute key " +
                      std::to_string(key) + " returned " + std::to_string(result)};
}

}  // namespace

int AttributeKeys::Make(CopyAttribute copy, DeleteAttribute remove, void* extra) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++last_;
  keys_[last_] = std::make_shared<AttributeKey>(AttributeKey{last_, copy, remove, extra});
  return last_;
}

SharedKey AttributeKeys::Find(int number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = keys_.find(number);
  return found == keys_.end() ? nullptr : found->second;
}

bool AttributeKeys::Free(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return keys_.erase(number) > 0;
}

Attributes::List::const_iterator Attributes::At(int key) const {
  return std::find_if(list_.begin(), list_.end(),
                      [key](const Attribute& attribute) { return attribute.key->number == key; });
}

Attributes::Attribute Attributes::Take(List::const_iterator at) {
  Attribute taken = *at;
  list_.erase(at);
  return taken;
}

Outcome Attributes::End(Communicator* comm, const Attribute& attribute) {
  const AttributeKey& key = *attribute.key;
  if (key.remove == nullptr) return {};
  Outcome outcome = OutcomeOfProgram(key.remove(comm, key.number, attribute.value, key.extra),
                                     "delete", key.number);
  if (outcome.ok()) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (At(key.number) == list_.end()) list_.push_back(attribute);
  return outcome;
}

Outcome Attributes::Set(Communicator* comm, const SharedKey& key, void* value) {
  for (;;) {
    Attribute old;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto at = At(key->number);
      if (at == list_.end()) {
        list_.push_back({key, value});
        return {};
      }
      old = Take(at);
    }
    if (Outcome outcome = End(comm, old); !outcome.ok()) return outcome;
  }
}

std::optional<void*> Attributes::Get(int key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = At(key);
  if (at == list_.end()) return std::nullopt;
  return at->value;
}

Outcome Attributes::Delete(Communicator* comm, int key) {
  Attribute found;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = At(key);
    if (at == list_.end()) return {};
    found = Take(at);
  }
  return End(comm, found);
}

Outcome Attributes::DeleteAll(Communicator* comm) {
  for (;;) {
    Attribute last;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (list_.empty()) return {};
      last = Take(std::prev(list_.end()));
    }
    if (Outcome outcome = End(comm, last); !outcome.ok()) return outcome;
  }
}

Outcome Attributes::CopyTo(Communicator* comm, Attributes& copy) const {
  List all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all = list_;
  }
  for (const Attribute& attribute : all) {
    const AttributeKey& key = *attribute.key;
    if (key.copy == nullptr) continue;
    void* value = nullptr;
    int flag = 0;
    Outcome outcome = OutcomeOfProgram(
        key.copy(comm, key.number, key.extra, attribute.value, static_cast<void*>(&value), &flag),
        "copy", key.number);
    if (!outcome.ok()) return outcome;
    if (flag != 0) {
      const std::lock_guard<std::mutex> lock(copy.mutex_);
      copy.list_.push_back({attribute.key, value});
    }
  }
  return {};
}

}  // namespace railhead::mpi
