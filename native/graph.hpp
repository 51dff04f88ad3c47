// The content graph of a forwarding table (Kulik 2004, section 3.3), as compact arrays.
//
// Nodes are dense indexes here and identifiers outside. The graph is kept transitively reduced,
// as routing/content_graph.py keeps it; that file says what each operation means, and both must
// agree on every result and every error.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "id_map.hpp"
#include "pool.hpp"

namespace f3 {

// An illegal request, refused before any change.
struct ProtocolError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Index = u32;
using Indexes = std::vector<Index>;

struct Node {
  List parents, children;
  List labels;  // table.hpp
  u32 labelled = 0;
  u32 holders = 0;  // a bit for each of the first neighbours that is subscribed
};

class Graph {
 public:
  static constexpr Index ABSENT = IdMap::ABSENT;

  Index find(u32 id) const { return ids_.find(id); }
  void prefetch_id(u32 id) const { ids_.prefetch(id); }
  u32 id(Index node) const { return id_of_[node]; }
  u64 size() const { return ids_.size(); }
  u64 edges() const { return edges_; }
  u64 bytes() const;

  List parents(Index node) const { return nodes_[node].parents; }
  List children(Index node) const { return nodes_[node].children; }
  const u32* words(List list) const { return pool_.data(list); }

  // All nodes, in no particular order.
  Indexes nodes() const;

  // The nodes and all their ancestors.
  void covering(const Indexes& nodes, Indexes& found);
  // Take out of `nodes`, which has no duplicates, those that are ancestors of others of them.
  void keep_lowest(Indexes& nodes);

  bool marked(Index node) const { return marks_[node] == epoch_; }
  void sort_by_id(Indexes& nodes) const;

 protected:
  Index insert_node(u32 id, const std::vector<u32>& parents, const std::vector<u32>& children);
  void remove_node(Index node);

  // Give memory back if much of it is unused; moves every list.
  void compact();

  // Start a walk: no node is marked.
  void unmark_all();
  void mark(Index node) { marks_[node] = epoch_; }
  void note(Index node, u32 what) {
    marks_[node] = epoch_;
    notes_[node] = what;
  }
  // The notes of all marked nodes above this one, on paths that do not pass through another, put
  // together bit by bit. Whatever is met is marked, so that no later call goes there again.
  u32 noted_above(Index start);
  // Different for every walk.
  u64 walk() const { return walks_; }

  Pool pool_;
  std::vector<Node> nodes_;
  std::vector<u32> id_of_;  // apart from the nodes: short enough to stay in the cache
  // Scratch: marks_[node] == epoch_ where the present walk has been, and then notes_[node] is
  // what the walk knows of the node.
  std::vector<u32> marks_, notes_;

 private:
  using Pairs = std::vector<std::pair<Index, Index>>;
  struct Step {
    Index node;
    u32 next, bits;
  };

  Indexes look_up(const std::vector<u32>& others) const;
  bool fits(const Indexes& above, const Indexes& below);
  bool uncovered(const Indexes& above, const Indexes& below);
  void drop_ancestors(Index node, Indexes& wanted);
  void link(Index parent, Index child);
  void unlink_all(List& list, const Indexes& others);
  Index new_index(u32 id);
  [[noreturn]] void refuse_placing(u32 id, const std::vector<u32>& parents,
                                   const std::vector<u32>& children) const;
  [[noreturn]] void refuse_fitting(u32 id, const Indexes& above, const Indexes& below);

  IdMap ids_;
  Indexes unused_;
  Indexes stack_;
  std::vector<Step> path_;
  Pairs pairs_;
  u64 edges_ = 0;
  u32 epoch_ = 0;
  u64 walks_ = 0;
};

}  // namespace f3
