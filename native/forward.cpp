#include "forward.hpp"

#include <algorithm>

namespace f3 {

// -- what a neighbour is due -------------------------------------------------------------------

void Due::start(u32 rows_max) {
  if (rows.size() < rows_max) {
    rows.resize(rows_max);
    ends.resize(rows_max + 1);
    nodes.resize(std::max<size_t>(nodes.size(), rows_max));
  }
  ends[0] = 0;
  count = width = 0;
}

inline u32* Due::add(u32 row, u32 size) {
  if (width + u64(size) > nodes.size()) {
    if (width + u64(size) > ~u32(0)) throw std::length_error("the headers of a batch are too long");
    nodes.resize(std::max<size_t>(width + u64(size), 2 * nodes.size()));
  }
  u32* header = nodes.data() + width;
  width += size;
  rows[count++] = row;
  ends[count] = width;
  return header;
}

// -- remembered headers ------------------------------------------------------------------------

u64 Memory::hash(const u32* header, u32 size) {
  u64 hash = size;
  for (u32 k = 0; k < size; ++k) {
    hash = (hash ^ header[k]) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

const u32* Memory::find(const u32* header, u32 size, u64 hash) const {
  if (!size_) return nullptr;
  for (size_t k = hash;; ++k) {
    const Cell& cell = cells_[k & (cells_.size() - 1)];
    if (!cell.at) return nullptr;
    if (cell.check != u32(hash >> 32)) continue;
    const u32* entry = &words_[cell.at - 1];
    if (entry[0] == size && std::equal(header, header + size, entry + 1)) return entry + 1 + size;
  }
}

const u32* Memory::keep(const u32* header, u32 size, u64 hash, const std::vector<u32>& answer) {
  const size_t more = 1 + size + answer.size();
  if (more > WORDS_MAX / 16) return answer.data();
  if (words_.size() + more > WORDS_MAX) forget();
  if (2 * (size_ + 1) > cells_.size()) grow();
  size_t k = hash;
  while (cells_[k & (cells_.size() - 1)].at) ++k;
  cells_[k & (cells_.size() - 1)] = {u32(hash >> 32), u32(words_.size() + 1)};
  ++size_;
  words_.push_back(size);
  words_.insert(words_.end(), header, header + size);
  words_.insert(words_.end(), answer.begin(), answer.end());
  return &words_[words_.size() - answer.size()];
}

void Memory::forget() {
  if (!size_) return;
  size_ = 0;
  words_.clear();
  if (words_.capacity() > WORDS_MAX / 16) words_.shrink_to_fit();
  cells_.assign(CELLS_MIN, Cell{0, 0});  // small again: a busy table forgets often
}

// The cells do not keep the whole hash, so it is worked out again.
void Memory::grow() {
  std::vector<Cell> old(std::max(CELLS_MIN, 2 * cells_.size()), Cell{0, 0});
  old.swap(cells_);
  for (const Cell& cell : old) {
    if (!cell.at) continue;
    size_t k = hash(&words_[cell.at], words_[cell.at - 1]);
    while (cells_[k & (cells_.size() - 1)].at) ++k;
    cells_[k & (cells_.size() - 1)] = cell;
  }
}

// -- forwarding --------------------------------------------------------------------------------

void Forwarder::route(const Columns& columns) {
  rows_ = columns.count();
  unknown_ = 0;
  for (u32 neighbor : neighbors_) due_[neighbor].count = 0;
  neighbors_.clear();
  for (u32 row = 0; row < rows_; row += BLOCK)
    route_block(columns, row, std::min(row + BLOCK, rows_));
}

// Row by row, each look-up would wait for the memory of the one before. A block at a time, the
// memory of all its rows is on the way while they are looked at in turn.
void Forwarder::route_block(const Columns& columns, u32 begin, u32 end) {
  const u32* nodes = reinterpret_cast<const u32*>(columns.nodes.data());
  const auto at = [&](u32 row) { return u32_at(columns.header_offsets, row); };
  const auto one = [&](u32 row) { return at(row + 1) - at(row) == 1; };
  for (u32 row = begin; row < end; ++row)
    if (one(row)) table_.prefetch_id(nodes[at(row)]);
  for (u32 row = begin; row < end; ++row) {
    found_[row - begin] = one(row) ? table_.find(nodes[at(row)]) : Table::ABSENT;
    if (found_[row - begin] != Table::ABSENT) table_.prefetch_node(found_[row - begin]);
  }
  for (u32 k = 0; k < end - begin; ++k)
    if (found_[k] != Table::ABSENT) table_.prefetch_labels(found_[k]);
  for (u32 row = begin; row < end; ++row) {
    if (one(row))
      route_one(row, found_[row - begin]);
    else if (at(row + 1) > at(row))
      route_many(row, nodes + at(row), at(row + 1) - at(row));
  }
}

void Forwarder::route_one(u32 row, Index node) {
  if (node == Table::ABSENT) {
    ++unknown_;
    return;
  }
  const Labels all = table_.labels(node);
  for (u32 k = 0; k < all.count; ++k) {
    const Span span = all.members(k);
    u32* ids = open(all.neighbor(k)).add(row, span.size);
    for (u32 m = 0; m < span.size; ++m) ids[m] = table_.id(span.data[m]);
  }
}

void Forwarder::route_many(u32 row, const u32* header, u32 size) {
  const u64 hash = Memory::hash(header, size);
  const u32* answer = memory_.find(header, size, hash);
  if (!answer) answer = this->answer(header, size, hash);
  unknown_ += answer[0];
  const u32* entry = answer + 2;
  for (const u32* end = entry + answer[1]; entry != end; entry += 2 + entry[1])
    std::copy(entry + 2, entry + 2 + entry[1], open(entry[0]).add(row, entry[1]));
}

// [whether a node is unknown, words that follow, (neighbour, size, identifiers)...]
const u32* Forwarder::answer(const u32* header, u32 size, u64 hash) {
  known_.clear();
  u32 unknown = 0;
  for (u32 k = 0; k < size; ++k) {
    const Index node = table_.find(header[k]);
    if (node == Table::ABSENT)
      unknown = 1;
    else
      known_.push_back(node);
  }
  table_.merge(known_, merged_);
  answer_.assign({unknown, u32(merged_.size())});
  answer_.insert(answer_.end(), merged_.begin(), merged_.end());
  for (size_t k = 2; k < answer_.size(); k += 2 + answer_[k + 1])
    for (u32 m = 0; m < answer_[k + 1]; ++m)
      answer_[k + 2 + m] = table_.id(answer_[k + 2 + m]);
  return memory_.keep(header, size, hash, answer_);
}

inline Due& Forwarder::open(u32 neighbor) {
  if (neighbor >= due_.size()) due_.resize(neighbor + 1);
  Due& due = due_[neighbor];
  if (!due.count) {
    due.start(rows_);
    neighbors_.push_back(neighbor);
  }
  return due;
}

u64 Forwarder::bytes() const {
  u64 sum = memory_.bytes() + 4 * (neighbors_.capacity() + known_.capacity() +
                                   merged_.capacity() + answer_.capacity());
  for (const Due& due : due_)
    sum += sizeof(Due) + 4 * (due.rows.capacity() + due.ends.capacity() + due.nodes.capacity());
  return sum;
}

}  // namespace f3
