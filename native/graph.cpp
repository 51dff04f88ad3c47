#include "graph.hpp"

#include <algorithm>

namespace f3 {

// -- looking -----------------------------------------------------------------------------------

u64 Graph::bytes() const {
  return pool_.bytes() + ids_.bytes() + nodes_.capacity() * sizeof(Node) +
         4 * (marks_.capacity() + notes_.capacity() + unused_.capacity() + stack_.capacity()) +
         path_.capacity() * sizeof(path_[0]);
}

Indexes Graph::nodes() const {
  Indexes found;
  for (Index node = 0; node < nodes_.size(); ++node)
    if (ids_.find(nodes_[node].id) == node) found.push_back(node);
  return found;
}

void Graph::descendants(Index node, Indexes& found) {
  unmark_all();
  found.clear();
  found.push_back(node);
  for (size_t k = 0; k < found.size(); ++k) {
    const List list = nodes_[found[k]].children;
    const u32* children = pool_.data(list);
    for (u32 c = 0; c < list.size; ++c) {
      if (marked(children[c])) continue;
      mark(children[c]);
      found.push_back(children[c]);
    }
  }
  found.erase(found.begin());
}

void Graph::covering(const Indexes& nodes, Indexes& found) {
  unmark_all();
  found.clear();
  for (Index node : nodes) {
    if (marked(node)) continue;
    mark(node);
    found.push_back(node);
  }
  for (size_t k = 0; k < found.size(); ++k) {
    const List list = nodes_[found[k]].parents;
    const u32* parents = pool_.data(list);
    for (u32 p = 0; p < list.size; ++p) {
      if (marked(parents[p])) continue;
      mark(parents[p]);
      found.push_back(parents[p]);
    }
  }
}

void Graph::keep_lowest(Indexes& nodes) {
  if (nodes.size() < 2) return;
  unmark_all();
  stack_ = nodes;
  while (!stack_.empty()) {
    const List list = nodes_[stack_.back()].parents;
    stack_.pop_back();
    const u32* parents = pool_.data(list);
    for (u32 p = 0; p < list.size; ++p) {
      if (marked(parents[p])) continue;
      mark(parents[p]);
      stack_.push_back(parents[p]);
    }
  }
  drop_marked(nodes);
}

void Graph::drop_marked(Indexes& nodes) const {
  const auto gone = [&](Index node) { return marked(node); };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), gone), nodes.end());
}

// notes_ tells what is known of a marked node: 1 if it is one of `nodes` or below one.
void Graph::keep_highest(Indexes& nodes, const Indexes& clean) {
  if (nodes.size() < 2) return;
  unmark_all();
  for (Index node : clean) {
    mark(node);
    notes_[node] = 0;
  }
  for (Index node : nodes) {
    mark(node);
    notes_[node] = 1;
  }
  const auto low = [&](Index node) {
    const List list = nodes_[node].parents;
    for (u32 p = 0; p < list.size; ++p)
      if (tainted(pool_.data(list)[p])) return true;
    return false;
  };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), low), nodes.end());
}

// Depth first: a node is known once all its parents are, or one tainted parent.
bool Graph::tainted(Index start) {
  if (marked(start)) return notes_[start];
  path_.assign(1, {start, 0});
  bool taint = false;
  while (!path_.empty()) {
    const Index node = path_.back().first;
    const List list = nodes_[node].parents;
    if (taint || path_.back().second == list.size) {
      mark(node);
      notes_[node] = taint;
      path_.pop_back();
      continue;
    }
    const Index parent = pool_.data(list)[path_.back().second++];
    if (!marked(parent))
      path_.push_back({parent, 0});
    else
      taint = notes_[parent];
  }
  return taint;
}

void Graph::sort_by_id(Indexes& nodes) const {
  std::sort(nodes.begin(), nodes.end(), [&](Index a, Index b) { return id(a) < id(b); });
}

void Graph::unmark_all() {
  if (++epoch_ == 0) {  // after four thousand million walks
    std::fill(marks_.begin(), marks_.end(), 0);
    epoch_ = 2;  // `drop_ancestors` uses the one before as well
  }
}

// -- changing ----------------------------------------------------------------------------------

Index Graph::insert_node(u32 id, const std::vector<u32>& parents,
                         const std::vector<u32>& children) {
  if (find(id) != ABSENT)
    throw ProtocolError("node " + std::to_string(id) + " is in the graph already");
  const Indexes above = look_up(parents), below = look_up(children);
  if (above.size() != parents.size() || below.size() != children.size())
    refuse_placing(id, parents, children);
  check_between(id, above, below);
  check_antichains(id, above, below);
  const Index node = new_index(id);
  if (!below.empty())
    for (Index parent : above) unlink_all(nodes_[parent].children, below);
  if (!above.empty())
    for (Index child : below) {
      const u32 before = nodes_[child].parents.size;
      unlink_all(nodes_[child].parents, above);
      edges_ -= before - nodes_[child].parents.size;
    }
  for (Index parent : above) link(parent, node);
  for (Index child : below) link(node, child);
  return node;
}

// Join the parents to the children where no other path does.
void Graph::remove_node(Index node) {
  const List up = nodes_[node].parents, down = nodes_[node].children;
  const Indexes above(pool_.data(up), pool_.data(up) + up.size);
  const Indexes below(pool_.data(down), pool_.data(down) + down.size);
  for (Index parent : above) pool_.erase(nodes_[parent].children, node);
  for (Index child : below) pool_.erase(nodes_[child].parents, node);
  edges_ -= above.size() + below.size();
  pool_.resize(nodes_[node].parents, 0);
  pool_.resize(nodes_[node].children, 0);
  ids_.erase(nodes_[node].id);
  unused_.push_back(node);
  Indexes missing;
  for (Index child : below) {
    missing = above;
    drop_ancestors(child, missing);
    for (Index parent : missing) link(parent, child);
  }
}

// The indexes of identifiers in rising order, without duplicates; those that are absent left out.
Indexes Graph::look_up(const std::vector<u32>& others) const {
  Indexes found;
  found.reserve(others.size());
  for (u32 other : others) {
    const Index index = find(other);
    if (index != ABSENT) found.push_back(index);
  }
  return found;
}

void Graph::refuse_placing(u32 id, const std::vector<u32>& parents,
                           const std::vector<u32>& children) const {
  std::vector<u32> others(parents);
  others.insert(others.end(), children.begin(), children.end());
  std::sort(others.begin(), others.end());
  for (u32 other : others)
    if (find(other) == ABSENT)
      throw ProtocolError("node " + std::to_string(id) + " cannot be placed beside node " +
                          std::to_string(other) + ": unknown");
  throw std::logic_error("no node is unknown");
}

// Every parent must cover every child already.
void Graph::check_between(u32 id, const Indexes& above, const Indexes& below) {
  Indexes missing;
  for (Index child : below) {
    missing = above;
    drop_ancestors(child, missing);
    if (missing.empty()) continue;
    const std::string low = std::to_string(nodes_[child].id);
    u32 least = nodes_[missing[0]].id;
    for (Index parent : missing) least = std::min(least, nodes_[parent].id);
    const std::string high = std::to_string(least);
    throw ProtocolError("node " + std::to_string(id) + " cannot stand between " + high + " and " +
                        low + ": " + high + " does not cover " + low);
  }
}

void Graph::check_antichains(u32 id, const Indexes& above, const Indexes& below) {
  Indexes lowest(above), highest(below);
  keep_lowest(lowest);
  keep_highest(highest, above);
  if (lowest.size() != above.size() || highest.size() != below.size())
    throw ProtocolError("the parents or the children of node " + std::to_string(id) +
                        " cover one another");
}

void Graph::drop_ancestors(Index node, Indexes& wanted) {
  if (wanted.empty()) return;
  unmark_all();
  unmark_all();
  const u32 sought = epoch_ - 1;  // the mark of wanted nodes that the walk has not met
  for (Index each : wanted) marks_[each] = sought;
  size_t left = wanted.size();
  stack_.assign(1, node);
  while (!stack_.empty() && left) {
    const List list = nodes_[stack_.back()].parents;
    stack_.pop_back();
    const u32* parents = pool_.data(list);
    for (u32 p = 0; p < list.size; ++p) {
      if (marked(parents[p])) continue;
      left -= marks_[parents[p]] == sought;
      mark(parents[p]);
      stack_.push_back(parents[p]);
    }
  }
  drop_marked(wanted);
}

void Graph::link(Index parent, Index child) {
  pool_.push(nodes_[parent].children, child);
  pool_.push(nodes_[child].parents, parent);
  ++edges_;
}

void Graph::unlink_all(List& list, const Indexes& others) {
  unmark_all();
  for (Index other : others) mark(other);
  u32* words = pool_.data(list);
  u32* end = std::remove_if(words, words + list.size, [&](Index n) { return marked(n); });
  pool_.resize(list, u32(end - words));
}

Index Graph::new_index(u32 id) {
  Index node;
  if (unused_.empty()) {
    node = Index(nodes_.size());
    if (node >> 31) throw std::bad_alloc();  // labels keep one bit for themselves
    nodes_.emplace_back();
    marks_.push_back(0);
    notes_.push_back(0);
  } else {
    node = unused_.back();
    unused_.pop_back();
    nodes_[node] = Node{};
  }
  nodes_[node].id = id;
  ids_.insert(id, node);
  return node;
}

}  // namespace f3
