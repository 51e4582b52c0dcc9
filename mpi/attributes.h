// SPDX-License-Identifier: Apache-2.0
//
// Attributes of communicators: values that a program caches, with the functions that it wants
// called when a communicator is copied and when a value ends. Used by Process (process.h), which
// has the keys, and Group (group.h), which has the values.
#ifndef RAILHEAD_MPI_ATTRIBUTES_H_
#define RAILHEAD_MPI_ATTRIBUTES_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "mpi/objects.h"

namespace railhead::mpi {

// MPI_Comm_copy_attr_function: *flag is 1 if the copy of the communicator gets *copy.
using CopyAttribute = int (*)(Communicator* comm, int key, void* extra, void* value, void* copy,
                              int* flag);
// MPI_Comm_delete_attr_function.
using DeleteAttribute = int (*)(Communicator* comm, int key, void* value, void* extra);

struct AttributeKey {
  int number;
  CopyAttribute copy;      // null: as MPI_COMM_NULL_COPY_FN
  DeleteAttribute remove;  // null: as MPI_COMM_NULL_DELETE_FN
  void* extra;
};
using SharedKey = std::shared_ptr<const AttributeKey>;

// The keys that a program has made and not freed. Thread-safe.
class AttributeKeys {
 public:
  int Make(CopyAttribute copy, DeleteAttribute remove, void* extra);
  SharedKey Find(int number) const;  // null: there is none
  // Attributes that have the key keep it. False if there is none.
  bool Free(int number);

 private:
  mutable std::mutex mutex_;
  std::map<int, SharedKey> keys_;  // guarded by mutex_
  int last_ = 100;                 // MPI's own are below
};

// The attributes of one communicator, whose handle the program's functions get. They may call MPI,
// so that no lock is held. A function that fails ends the call, with its result as the error.
// Thread-safe.
class Attributes {
 public:
  // Ends the value that the attribute had.
  Outcome Set(Communicator* comm, const SharedKey& key, void* value);
  std::optional<void*> Get(int key) const;
  // Does nothing if there is none; if its function fails, it stays.
  Outcome Delete(Communicator* comm, int key);
  // The latest first.
  Outcome DeleteAll(Communicator* comm);
  // Sets, on a copy of the communicator, what the program's functions copy.
  Outcome CopyTo(Communicator* comm, Attributes& copy) const;

 private:
  struct Attribute {
    SharedKey key;
    void* value = nullptr;
  };
  using List = std::vector<Attribute>;

  // With mutex_ held.
  List::const_iterator At(int key) const;
  Attribute Take(List::const_iterator at);
  // Calls the program's function with an attribute that was taken, and restores it on failure. Two
  // threads that delete one attribute call it once.
  Outcome End(Communicator* comm, const Attribute& attribute);

  mutable std::mutex mutex_;
  List list_;  // guarded by mutex_; in the order in which they were set
};

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_ATTRIBUTES_H_
