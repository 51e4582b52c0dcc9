// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/merged_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kube/cache/cache.h"

namespace railhead::kube {
namespace {

Json Object(const std::string& space, const std::string& name, int value = 0) {
  return {{"metadata", {{"namespace", space}, {"name", name}}}, {"value", value}};
}

// A cache that counts the lists it was given.
class CountedCache final : public ObjectSink {
 public:
  void BeginList() override {
    ++begun;
    cache.BeginList();
  }
  void Put(const Json& object) override { cache.Put(object); }
  void Remove(const Json& object) override { cache.Remove(object); }
  void EndList() override {
    ++ended;
    cache.EndList();
  }

  std::map<std::string, int> Content() const {
    std::map<std::string, int> content;
    cache.ForEach([&content](const std::string& key, const auto& value) { content[key] = *value; });
    return content;
  }

  int begun = 0;
  int ended = 0;
  Cache<int> cache{[](const Json& object) { return std::optional<int>(object["value"]); }};
};

TEST(MergedListsTest, TheListEndsWithTheLastFirstListOfASource) {
  CountedCache out;
  MergedLists merged(&out, 2);
  merged.source(0)->BeginList();
  merged.source(1)->BeginList();
  merged.source(0)->Put(Object("a", "one"));
  merged.source(0)->EndList();
  EXPECT_EQ(out.begun, 1);
  EXPECT_EQ(out.ended, 0);
  merged.source(0)->BeginList();  // its watch ended at once, and its version was gone
  merged.source(0)->Put(Object("a", "two"));
  merged.source(0)->EndList();
  EXPECT_EQ(out.ended, 0);
  merged.source(1)->EndList();
  EXPECT_EQ(out.begun, 1);
  EXPECT_EQ(out.ended, 1);
  EXPECT_THAT(out.Content(), ::testing::ElementsAre(::testing::Pair("a/two", 0)));
}

TEST(MergedListsTest, AListOfOneSourceLeavesTheObjectsOfOthers) {
  CountedCache out;
  MergedLists merged(&out, 2);
  for (size_t i = 0; i < 2; ++i) {
    merged.source(i)->BeginList();
    merged.source(i)->Put(Object(i == 0 ? "a" : "b", "pod"));
    merged.source(i)->EndList();
  }
  merged.source(0)->BeginList();
  merged.source(0)->EndList();
  EXPECT_THAT(out.Content(), ::testing::ElementsAre(::testing::Pair("b/pod", 0)));
}

// Each source is a namespace with a history of its own: lists, some of which are interrupted, and
// events between them. Whatever the interleaving, the cache equals the union of what each server
// last said, and has one list.
TEST(MergedListsTest, RandomHistoriesEndEqualToTheNamespaces) {
  const char* const more = std::getenv("RAILHEAD_SEEDS");
  const int seeds = more == nullptr ? 300 : std::atoi(more);
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
    const size_t spaces = 1 + below(4);
    CountedCache out;
    MergedLists merged(&out, spaces);

    struct Server {
      std::map<std::string, int> objects;  // by key; as the server has them
      std::vector<std::string> to_list;    // keys that the list under way has not sent yet
      bool listing = false;
      bool listed = false;
    };
    std::vector<Server> servers(spaces);
    const auto space_of = [](size_t i) { return std::string(1, static_cast<char>('a' + i)); };
    const auto begin_list = [&](size_t i) {
      servers[i].listing = true;
      servers[i].listed = false;
      servers[i].to_list.clear();
      for (const auto& [name, value] : servers[i].objects) servers[i].to_list.push_back(name);
      merged.source(i)->BeginList();
    };
    const auto go_on = [&](size_t i) {
      Server& server = servers[i];
      if (!server.to_list.empty()) {
        const std::string name = server.to_list.back();
        server.to_list.pop_back();
        merged.source(i)->Put(Object(space_of(i), name, server.objects.at(name)));
        return;
      }
      merged.source(i)->EndList();
      server.listing = false;
      server.listed = true;
    };
    for (int step = 0; step < 120; ++step) {
      const size_t i = below(spaces);
      Server& server = servers[i];
      if (server.listing) {
        below(12) == 0 ? begin_list(i) : go_on(i);
      } else if (!server.listed || below(8) == 0) {
        // Before a list, the server may have changed without a word to us.
        for (size_t change = below(4); change > 0; --change) {
          const std::string name(1, static_cast<char>('p' + below(5)));
          if (below(2) == 0) {
            server.objects.erase(name);
          } else {
            server.objects[name] = static_cast<int>(below(3));
          }
        }
        begin_list(i);
      } else {
        const std::string name(1, static_cast<char>('p' + below(5)));
        if (below(2) == 0) {
          merged.source(i)->Remove(Object(space_of(i), name));
          server.objects.erase(name);
        } else {
          server.objects[name] = static_cast<int>(below(3));
          merged.source(i)->Put(Object(space_of(i), name, server.objects.at(name)));
        }
      }
    }
    std::map<std::string, int> expected;
    for (size_t i = 0; i < spaces; ++i) {
      if (!servers[i].listing && !servers[i].listed) begin_list(i);
      while (servers[i].listing) go_on(i);
      for (const auto& [name, value] : servers[i].objects) {
        expected[space_of(i) + "/" + name] = value;
      }
    }
    EXPECT_EQ(out.Content(), expected);
    EXPECT_EQ(out.begun, 1);
    EXPECT_EQ(out.ended, 1);
  }
}

}  // namespace
}  // namespace railhead::kube
