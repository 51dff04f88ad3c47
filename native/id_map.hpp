// Node identifiers to the small numbers by which the table knows its nodes.
//
// Open addressing with linear probing; a removal moves later entries back, so there are no
// tombstones to clean up. A table's identifiers come from its rendezvous point's graph, so a
// subscriber cannot choose them to collide.
#pragma once

#include <vector>

#include "pool.hpp"

namespace f3 {

class IdMap {
 public:
  static constexpr u32 ABSENT = ~u32(0);

  u32 find(u32 id) const {
    if (cells_.empty()) return ABSENT;
    for (u32 k = home(id);; k = next(k)) {
      if (cells_[k].index == ABSENT) return ABSENT;
      if (cells_[k].id == id) return cells_[k].index;
    }
  }

  // Ask for the memory of an identifier's home early; the answer is needed soon.
  void prefetch(u32 id) const {
    if (!cells_.empty()) __builtin_prefetch(&cells_[home(id)]);
  }

  void insert(u32 id, u32 index) {
    if (4 * (size_ + 1) > 3 * cells_.size()) grow();
    place({id, index});
    ++size_;
  }

  void erase(u32 id) {
    u32 hole = home(id);
    while (cells_[hole].id != id || cells_[hole].index == ABSENT) hole = next(hole);
    for (u32 k = next(hole); cells_[k].index != ABSENT; k = next(k)) {
      // An entry may move into the hole unless its home lies behind the hole.
      if (((k - home(cells_[k].id)) & mask()) >= ((k - hole) & mask())) {
        cells_[hole] = cells_[k];
        hole = k;
      }
    }
    cells_[hole].index = ABSENT;
    --size_;
  }

  u64 size() const { return size_; }
  u64 bytes() const { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    u32 id, index;
  };

  u32 mask() const { return u32(cells_.size() - 1); }
  u32 next(u32 k) const { return (k + 1) & mask(); }
  u32 home(u32 id) const { return u32((id * 0x9E3779B97F4A7C15ull) >> shift_); }

  void place(Cell cell) {
    u32 k = home(cell.id);
    while (cells_[k].index != ABSENT) k = next(k);
    cells_[k] = cell;
  }

  void grow() {
    std::vector<Cell> old(cells_.empty() ? 16 : 2 * cells_.size(), Cell{0, ABSENT});
    old.swap(cells_);
    shift_ = 64 - (31 - __builtin_clz(u32(cells_.size())));
    for (const Cell& cell : old)
      if (cell.index != ABSENT) place(cell);
  }

  std::vector<Cell> cells_;
  u64 size_ = 0;
  u32 shift_ = 0;
};

}  // namespace f3
