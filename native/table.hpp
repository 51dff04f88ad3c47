// F3's forwarding table: a content graph whose nodes carry output labels (Kulik 2004, 3.4.5).
//
//     o(v,i) = low(({v} + A(v)) & subs(i))   for every node v and every neighbour i
//
// The same as LabelTable in routing/table.py, which says why each step is what it is. That a
// neighbour i is subscribed to v is not stored: it is so exactly where o(v,i) = {v}.
#pragma once

#include "graph.hpp"

namespace f3 {

// A run of node indexes, by rising identifier.
struct Span {
  const u32* data;
  u32 size;
};

// Per neighbour, by rising number, a reduced label: neighbour, size, nodes; one after the other.
using Merged = std::vector<u32>;

class Table : public Graph {
 public:
  // Parents and children are identifiers in rising order without duplicates.
  void insert(u32 id, const std::vector<u32>& parents, const std::vector<u32>& children);
  void remove(Index node);

  bool holds(Index node, u32 neighbor) const;
  bool subscribed(Index node) const;
  // False if the neighbour was, or was not, subscribed already.
  bool attach(Index node, u32 neighbor);
  bool detach(Index node, u32 neighbor);

  // Where the node stands in the neighbour's graph (section 3.4.6).
  void position(Index node, u32 neighbor, Indexes& parents, Indexes& children);

  Span label(Index node, u32 neighbor) const;
  // What a header of these nodes becomes: per neighbour, the lowest of all their labels.
  void merge(const Indexes& header, Merged& merged);

  // Labels of one node, as (neighbour, slot) pairs.
  List entries(Index node) const { return nodes_[node].labels; }
  Span members(const u32& slot) const;

  // Of a neighbour: how many nodes it is subscribed to.
  u64 held(u32 neighbor) const { return neighbor < held_.size() ? held_[neighbor] : 0; }
  u64 subscriptions() const;
  u64 labels() const;
  u64 bytes() const;
  // Whether every word of the pool belongs to a list or is free.
  bool accounts() const;

 private:
  static constexpr u32 MANY = 1u << 31;  // in a slot: the rest is where [size, members] is

  const u32* find_entry(Index node, u32 neighbor) const;
  void set_label(Index node, u32 neighbor, const Indexes& label);
  void erase_entry(List& list, u32 at);
  u32 insert_entry(List& list, u32 neighbor);
  u32 new_slot(const Indexes& label);
  void free_slot(u32 slot);

  void label_descendants(Index node, u32 neighbor);
  void relabel(Index node, Index below, u32 neighbor);
  void affected(Index node, u32 neighbor, Indexes& order);
  void merge_parent_labels(Index node, u32 neighbor);
  void lowest_held(Index node, u32 neighbor, Indexes& parents);
  void highest_held(Index node, u32 neighbor, Indexes& children);

  void gather(const Indexes& header, u32 first, u32& next);
  void propagate();
  void ascend(Index start);
  void emit(u32 first, Merged& merged);

  std::vector<u64> held_;
  // Scratch, kept between calls.
  Indexes found_, label_, replaced_;
  std::vector<std::pair<Index, u32>> path_;
  // Of a merge: the nodes met, and for each by bit, which of 64 neighbours want it, and which
  // want something below it.
  Indexes met_, order_, sorted_;
  std::vector<u64> want_, below_;
  std::vector<char> entered_;
  u64 seen_ = 0, twice_ = 0;
};

}  // namespace f3
