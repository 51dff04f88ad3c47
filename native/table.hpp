// F3's forwarding table: a content graph whose nodes carry output labels (Kulik 2004, 3.4.5).
//
//     o(v,i) = low(({v} + A(v)) & subs(i))   for every node v and every neighbour i
//
// The same as LabelTable in routing/table.py, which says why each step is what it is. A
// neighbour i is subscribed to v exactly where o(v,i) = {v}.
#pragma once

#include <tuple>

#include "graph.hpp"

namespace f3 {

// A run of node indexes, by rising identifier.
struct Span {
  const u32* data;
  u32 size;
};

// The labels of one node, in one block: a walk touches many nodes, and each block is a wait for
// memory. First come (neighbour, slot) pairs by rising neighbour. Most labels are one node, which
// is the slot itself; of others, the slot says where [size, nodes...] is in the block.
struct Labels {
  static constexpr u32 MANY = 1u << 31;

  const u32* block;
  u32 count;

  u32 neighbor(u32 k) const { return block[2 * k]; }
  bool single(u32 k, Index node) const { return block[2 * k + 1] == node; }
  Span members(u32 k) const {
    const u32& slot = block[2 * k + 1];
    if (!(slot & MANY)) return {&slot, 1};
    const u32* list = block + (slot & ~MANY);
    return {list + 1, list[0]};
  }
  // Which one is the neighbour's; `count` if none is.
  u32 find(u32 neighbor) const;
};

// Per neighbour, by rising number, a label: neighbour, size, nodes; one after the other.
using Merged = std::vector<u32>;

class Table : public Graph {
 public:
  // Parents and children are identifiers in rising order without duplicates.
  void insert(u32 id, const std::vector<u32>& parents, const std::vector<u32>& children);
  void remove(Index node);

  // Whether o(v,i) = {v}; of the first neighbours without a look at the labels, which would be a
  // wait for memory at every step of a walk.
  bool holds(Index node, u32 neighbor) const {
    return neighbor < BITS ? nodes_[node].holders >> neighbor & 1 : labelled_itself(node, neighbor);
  }
  bool subscribed(Index node) const;
  // False if the neighbour was, or was not, subscribed already.
  bool attach(Index node, u32 neighbor);
  bool detach(Index node, u32 neighbor);

  // Where the node stands in the neighbour's graph (section 3.4.6).
  void position(Index node, u32 neighbor, Indexes& parents, Indexes& children);

  Span label(Index node, u32 neighbor) const;
  Labels labels(Index node) const {
    return {pool_.data(nodes_[node].labels), nodes_[node].labelled};
  }
  // What a header of these nodes becomes: per neighbour, the lowest of all their labels.
  void merge(const Indexes& header, Merged& merged);

  // Ask for memory that is needed soon: a node, and then its labels.
  void prefetch_node(Index node) const { __builtin_prefetch(&nodes_[node]); }
  void prefetch_labels(Index node) const {
    const List list = nodes_[node].labels;
    for (u32 at = 0; at < list.size && at < 64; at += 16)
      __builtin_prefetch(pool_.data(list) + at);
  }

  // Of a neighbour: how many nodes it is subscribed to.
  u64 held(u32 neighbor) const { return neighbor < held_.size() ? held_[neighbor] : 0; }
  u64 subscriptions() const;
  u64 all_labels() const;
  u64 bytes() const;
  // Whether every word of the pool belongs to a list or is free, and holders agree with labels.
  bool accounts() const;

 private:
  static constexpr size_t BITS = 32;  // of a word: more nodes or neighbours take the long way
  static constexpr u32 HELD = 1, SHADOWED = 2, OPEN = 4;  // notes of a survey

  bool labelled_itself(Index node, u32 neighbor) const;
  void note_holder(Index node, u32 neighbor, bool holds);
  void set_label(Index node, u32 neighbor, const Indexes& label);
  void set_labels(Index node, const Merged& merged);
  void set_slot(Index node, u32 k, const Indexes& label);
  void insert_entry(Index node, u32 k, u32 neighbor);
  void cut(Index node, u32 at, u32 size);

  void prefetch(const Indexes& nodes, size_t k) const;
  void prefetch_lists(Index node, u32 neighbor) const;
  void survey(Index node, u32 neighbor);
  void cast_shadow(Index node);
  void label_descendants(Index node, u32 neighbor);
  void replace(Index node, u32 neighbor, Index by);
  void find_affected(Index node, u32 neighbor);
  void expose(Index node, Index below, u32 neighbor);
  void lowest_held(Index node, u32 neighbor, Indexes& parents);
  void highest_held(Index node, u32 neighbor, Indexes& children);

  void gather(const Indexes& header, u32 first, u32& next);
  void want(Span label, u64 bit);
  void propagate();
  void ascend(Index start);
  void emit(u32 first, Merged& merged);

  std::vector<u64> held_;
  // Scratch, kept between calls.
  Merged merged_;
  std::vector<u32> block_;
  Indexes label_, replaced_, exposed_, affected_, below_, late_;
  std::tuple<Index, u32, u64> surveyed_{ABSENT, 0, 0};  // node, neighbour, walk
  std::vector<std::pair<Index, u32>> path_;
  // Of a merge: the nodes met, and for each by bit, which of 64 neighbours want it, and which
  // want something below it.
  Indexes met_, order_, sorted_;
  std::vector<u64> want_, lower_;
  std::vector<char> entered_;
  u64 seen_ = 0, twice_ = 0;
};

}  // namespace f3
