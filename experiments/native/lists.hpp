// A hash table from identifiers to the set of neighbours that want each: all that content-list
// forwarding and multicast with disjunctive identifiers need (Kulik 2004, sections 3.4.3, 4.1.1).
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <vector>

namespace opponents {

class Lists {
 public:
  // Subscribes a neighbour, 0 to 63, to identifiers; returns how many entries are new.
  size_t subscribe(const uint32_t* ids, size_t count, unsigned neighbor) {
    const uint64_t bit = uint64_t(1) << neighbor;
    size_t fresh = 0;
    for (size_t k = 0; k < count; ++k) {
      uint64_t& wanted = table_[ids[k]];
      fresh += !(wanted & bit);
      wanted |= bit;
    }
    return fresh;
  }

  // The neighbours that want any identifier of a header.
  uint64_t route(const uint32_t* ids, size_t count) const {
    uint64_t due = 0;
    for (size_t k = 0; k < count; ++k) {
      const auto found = table_.find(ids[k]);
      if (found != table_.end()) due |= found->second;
    }
    return due;
  }

  size_t size() const { return table_.size(); }

  // Buckets of the open hash table: a key, a value, and the distance from its place.
  size_t bytes() const { return table_.bucket_count() * 24; }

 private:
  tsl::robin_map<uint32_t, uint64_t> table_;
};

}  // namespace opponents
