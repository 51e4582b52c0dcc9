// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_clients.h"

#include <optional>
#include <utility>

namespace railhead::kube {

std::vector<const HttpStanding*> StandingsOf(const std::vector<HttpClient*>& clients) {
  std::vector<const HttpStanding*> standings;
  standings.reserve(clients.size());
  for (const HttpClient* client : clients) standings.push_back(&client->standing);
  return standings;
}

HttpClient* HttpClients::Add(FileDescriptor fd, const std::string& source, absl::Time now) {
  std::unique_ptr<HttpSource>& of = sources_[source];
  if (of == nullptr) of = std::make_unique<HttpSource>(HttpSource{.name = source});
  const bool too_many_of_it = of->connections >= limits_.connections_of_source;
  if (too_many_of_it || open_ >= limits_.connections) {
    if (!MakeRoom(*of, too_many_of_it, now)) {
      ForgetIfUnused(of.get());
      return nullptr;
    }
  }
  const uint64_t id = next_id_++;
  auto client = std::make_unique<HttpClient>(id, std::move(fd),
                                             HttpReadLimits{.body_bytes = limits_.body_bytes});
  client->source = of.get();
  client->standing.source = of.get();
  client->standing.since = now;
  ++of->connections;
  ++open_;
  return all_.emplace(id, std::move(client)).first->second.get();
}

bool HttpClients::GiveUpOne(absl::Time now) { return MakeRoom(HttpSource(), false, now); }

bool HttpClients::MakeRoom(const HttpSource& newcomer, bool own, absl::Time now) {
  const std::vector<HttpClient*> open = Open();
  const std::optional<size_t> at = WhoMakesRoom(StandingsOf(open), newcomer, own, now);
  if (!at.has_value()) return false;
  Close(*open[*at]);
  return true;
}

std::vector<HttpClient*> HttpClients::Open() const {
  std::vector<HttpClient*> open;
  open.reserve(all_.size());
  for (const auto& [id, client] : all_) {
    if (client->connection != nullptr) open.push_back(client.get());
  }
  return open;
}

HttpClient* HttpClients::Find(uint64_t id) const {
  const auto at = all_.find(id);
  return at == all_.end() || at->second->connection == nullptr ? nullptr : at->second.get();
}

void HttpClients::Close(HttpClient& client) {
  if (client.connection == nullptr) return;
  client.connection.reset();  // which epoll forgets
  client.reader.Reset();
  std::string().swap(client.pending);
  std::string().swap(client.out);
  Account(client);
  --client.source->connections;
  --open_;
  closed_.push_back(client.id);
}

void HttpClients::RemoveClosed() {
  for (const uint64_t id : closed_) {
    const auto at = all_.find(id);
    if (at == all_.end()) continue;
    HttpSource* source = at->second->source;
    all_.erase(at);
    ForgetIfUnused(source);
  }
  closed_.clear();
}

void HttpClients::ForgetIfUnused(HttpSource* source) {
  if (source->connections > 0 || source->in_hand > 0) return;
  for (const auto& [id, client] : all_) {
    if (client->source == source) return;  // closed, and not removed yet
  }
  sources_.erase(std::string(source->name));
}

void HttpClients::Account(HttpClient& client) {
  size_t bytes = 0;
  if (client.connection != nullptr) {
    bytes = client.out.size() + client.pending.size();
    if (client.reader.begun()) bytes += client.reader.held_bytes();
  }
  bytes_ += bytes - client.standing.bytes;
  client.source->bytes += bytes - client.standing.bytes;
  client.standing.bytes = bytes;
}

void HttpClients::Hold(HttpSource& source, size_t bytes) {
  ++source.in_hand;
  source.bytes += bytes;
  bytes_ += bytes;
}

void HttpClients::Release(HttpSource& source, size_t bytes) {
  --source.in_hand;
  source.bytes -= bytes;
  bytes_ -= bytes;
  ForgetIfUnused(&source);
}

HttpClient* HttpClients::Slowest(absl::Time now) const {
  const std::vector<HttpClient*> open = Open();
  const std::optional<size_t> at = WhoFreesMemory(StandingsOf(open), Share(), now);
  return at.has_value() ? open[*at] : nullptr;
}

}  // namespace railhead::kube
