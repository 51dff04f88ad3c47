#include "graph.hpp"

#include <algorithm>

namespace f3 {

// -- looking -----------------------------------------------------------------------------------

u64 Graph::bytes() const {
  return pool_.bytes() + ids_.bytes() + nodes_.capacity() * sizeof(Node) +
         4 * (id_of_.capacity() + marks_.capacity() + notes_.capacity() + unused_.capacity() +
              stack_.capacity()) +
         path_.capacity() * sizeof(Step) + pairs_.capacity() * sizeof(pairs_[0]);
}

Indexes Graph::nodes() const {
  Indexes found;
  for (Index node = 0; node < nodes_.size(); ++node)
    if (ids_.find(id_of_[node]) == node) found.push_back(node);
  return found;
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
  const auto gone = [&](Index node) { return marked(node); };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), gone), nodes.end());
}

// Depth first: the bits of a node are known once those of all its parents are.
u32 Graph::noted_above(Index start) {
  u32 bits = 0;
  path_.assign(1, {start, 0, 0});
  while (!path_.empty()) {
    Step& step = path_.back();
    const List list = nodes_[step.node].parents;
    if (step.next < list.size) {
      const Index parent = pool_.data(list)[step.next++];
      if (marked(parent))
        step.bits |= notes_[parent];
      else
        path_.push_back({parent, 0, 0});
      continue;
    }
    bits = step.bits;
    const Index node = step.node;
    path_.pop_back();
    if (path_.empty()) break;
    note(node, bits);
    path_.back().bits |= bits;
  }
  return bits;
}

// The pairs of a node of `above`, in which none covers another, and one of `below` that it does
// not cover, into `pairs_`; 31 of `above` in one walk, a bit each. The last bit is for `below`:
// false if one of them covers another.
bool Graph::uncovered(const Indexes& above, const Indexes& below) {
  constexpr u32 EACH = 31, LOWER = u32(1) << EACH;
  pairs_.clear();
  u32 met = 0;
  for (size_t from = 0; from == 0 || from < above.size(); from += EACH) {
    const size_t count = std::min<size_t>(EACH, above.size() - from);
    unmark_all();
    for (Index child : below) note(child, LOWER);
    for (size_t k = 0; k < count; ++k) note(above[from + k], u32(1) << k);
    for (Index child : below) {
      const u32 bits = noted_above(child);
      met |= bits;
      for (u32 left = ((u32(1) << count) - 1) & ~bits; left; left &= left - 1)
        pairs_.emplace_back(above[from + size_t(__builtin_ctz(left))], child);
    }
  }
  return !(met & LOWER);
}

void Graph::sort_by_id(Indexes& nodes) const {
  std::sort(nodes.begin(), nodes.end(), [&](Index a, Index b) { return id(a) < id(b); });
}

void Graph::unmark_all() {
  ++walks_;
  if (++epoch_ == 0) {  // after four thousand million walks
    std::fill(marks_.begin(), marks_.end(), 0);
    epoch_ = 1;
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
  if (!fits(above, below)) refuse_fitting(id, above, below);
  unmark_all();
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
  unmark_all();  // what the last walk found may not be true any more
  const List up = nodes_[node].parents, down = nodes_[node].children;
  const Indexes above(pool_.data(up), pool_.data(up) + up.size);
  const Indexes below(pool_.data(down), pool_.data(down) + down.size);
  for (Index parent : above) pool_.erase(nodes_[parent].children, node);
  for (Index child : below) pool_.erase(nodes_[child].parents, node);
  edges_ -= above.size() + below.size();
  pool_.resize(nodes_[node].parents, 0);
  pool_.resize(nodes_[node].children, 0);
  ids_.erase(id_of_[node]);
  unused_.push_back(node);
  uncovered(above, below);
  for (const auto& [parent, child] : pairs_) link(parent, child);
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

// Every parent must cover every child already; among themselves neither may cover one another.
bool Graph::fits(const Indexes& above, const Indexes& below) {
  Indexes lowest(above);
  keep_lowest(lowest);
  return lowest.size() == above.size() && uncovered(above, below) && pairs_.empty();
}

// Which rule is broken, in the order in which they are told.
void Graph::refuse_fitting(u32 id, const Indexes& above, const Indexes& below) {
  for (Index child : below) {
    Indexes missing(above);
    drop_ancestors(child, missing);
    if (missing.empty()) continue;
    const std::string low = std::to_string(this->id(child));
    const std::string high = std::to_string(this->id(missing[0]));
    throw ProtocolError("node " + std::to_string(id) + " cannot stand between " + high + " and " +
                        low + ": " + high + " does not cover " + low);
  }
  throw ProtocolError("the parents or the children of node " + std::to_string(id) +
                      " cover one another");
}

void Graph::drop_ancestors(Index node, Indexes& wanted) {
  Indexes ancestors;
  covering({node}, ancestors);
  const auto above = [&](Index each) { return each != node && marked(each); };
  wanted.erase(std::remove_if(wanted.begin(), wanted.end(), above), wanted.end());
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

void Graph::compact() {
  if (!pool_.sparse()) return;
  Pool pool;
  for (Index node : nodes())
    for (List* list : {&nodes_[node].labels, &nodes_[node].children, &nodes_[node].parents}) {
      List copy;
      pool.assign(copy, pool_.data(*list), list->size);
      *list = copy;
    }
  pool_.swap(pool);
}

Index Graph::new_index(u32 id) {
  Index node;
  if (unused_.empty()) {
    node = Index(nodes_.size());
    if (node >> 31) throw std::bad_alloc();  // labels keep one bit for themselves
    nodes_.emplace_back();
    id_of_.push_back(id);
    marks_.push_back(0);
    notes_.push_back(0);
  } else {
    node = unused_.back();
    unused_.pop_back();
    nodes_[node] = Node{};
  }
  id_of_[node] = id;
  ids_.insert(id, node);
  return node;
}

}  // namespace f3
