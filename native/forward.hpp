// Forwarding (Kulik 2004, Figure 3-18): a batch taken apart into what each neighbour is due.
//
// A header of one node is looked up in the labels. One of several nodes must be reduced, which is
// the expensive part; the result depends on the table alone and is remembered until that changes.
#pragma once

#include "columns.hpp"
#include "table.hpp"

namespace f3 {

// What one neighbour is due of a batch: which rows, and their new headers.
struct Due {
  std::vector<u32> rows, ends, nodes;  // ends[k + 1] is where the header of rows[k] ends
  u32 count = 0;
  u32 width = 0;

  void start(u32 rows_max);
  // Room for the header of one more row.
  u32* add(u32 row, u32 size);
};

// Headers to what they become, forgotten all at once.
class Memory {
 public:
  // The remembered answer for a header, or null.
  const u32* find(const u32* header, u32 size, u64 hash) const;
  // Remember `answer`; returns a pointer to it, valid until the next call.
  const u32* keep(const u32* header, u32 size, u64 hash, const std::vector<u32>& answer);
  void forget();
  u64 bytes() const { return 4 * words_.capacity() + sizeof(Cell) * cells_.capacity(); }

  static u64 hash(const u32* header, u32 size);

 private:
  struct Cell {
    u32 check, at;  // the upper half of the hash; 1 + where [size, header, answer] is, 0 if empty
  };
  static constexpr size_t WORDS_MAX = 1 << 21;
  static constexpr size_t CELLS_MIN = 64;

  void grow();

  std::vector<Cell> cells_;
  std::vector<u32> words_;
  u32 size_ = 0;
};

class Forwarder {
 public:
  explicit Forwarder(Table& table) : table_(table) {}

  // The table has changed.
  void forget() { memory_.forget(); }

  // Route every row of columns that fit together. Afterwards: neighbours() are due something,
  // and due() says what.
  void route(const Columns& columns);
  const std::vector<u32>& neighbors() const { return neighbors_; }
  const Due& due(u32 neighbor) const { return due_[neighbor]; }
  // Rows with a node that is not in the table.
  u32 unknown() const { return unknown_; }
  u64 bytes() const;

 private:
  static constexpr u32 BLOCK = 16;

  void route_block(const Columns& columns, u32 begin, u32 end);
  void route_one(u32 row, Index node);
  void route_many(u32 row, const u32* header, u32 size);
  const u32* answer(const u32* header, u32 size, u64 hash);
  Due& open(u32 neighbor);

  Table& table_;
  Memory memory_;
  std::vector<Due> due_;
  std::vector<u32> neighbors_;
  u32 unknown_ = 0;
  u32 rows_ = 0;
  Index found_[BLOCK];
  Indexes known_;
  Merged merged_;
  std::vector<u32> answer_;
};

}  // namespace f3
