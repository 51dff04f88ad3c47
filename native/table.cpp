#include "table.hpp"

#include <algorithm>

namespace f3 {

// -- labels ------------------------------------------------------------------------------------

// The entry of neighbour i is the i-th where all neighbours have a label, and never after that.
u32 Labels::find(u32 neighbor) const {
  u32 low = 0, high = count;
  if (neighbor < high) {
    if (this->neighbor(neighbor) == neighbor) return neighbor;
    high = neighbor;
  }
  while (low < high) {
    const u32 middle = (low + high) / 2;
    if (this->neighbor(middle) < neighbor)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && this->neighbor(low) == neighbor ? low : count;
}

Span Table::label(Index node, u32 neighbor) const {
  const Labels all = labels(node);
  const u32 k = all.find(neighbor);
  return k < all.count ? all.members(k) : Span{nullptr, 0};
}

bool Table::labelled_itself(Index node, u32 neighbor) const {
  const Labels all = labels(node);
  const u32 k = all.find(neighbor);
  return k < all.count && all.single(k, node);
}

void Table::note_holder(Index node, u32 neighbor, bool holds) {
  if (neighbor >= BITS) return;
  const u32 bit = u32(1) << neighbor;
  nodes_[node].holders = holds ? nodes_[node].holders | bit : nodes_[node].holders & ~bit;
}

bool Table::subscribed(Index node) const {
  const Labels all = labels(node);
  for (u32 k = 0; k < all.count; ++k)
    if (all.single(k, node)) return true;
  return false;
}

// The label must be in rising order of identifiers.
void Table::set_label(Index node, u32 neighbor, const Indexes& label) {
  List& list = nodes_[node].labels;
  const Labels all = labels(node);
  u32 k = all.find(neighbor);
  if (k < all.count) {
    const Span before = all.members(k);
    if (before.size == label.size()) {
      std::copy(label.begin(), label.end(), pool_.data(list) + (before.data - all.block));
      return;
    }
    if (before.size > 1) cut(node, u32(before.data - all.block) - 1, before.size + 1);
    if (label.empty()) {
      --nodes_[node].labelled;
      cut(node, 2 * k, 2);
      return;
    }
  } else {
    if (label.empty()) return;
    for (k = 0; k < all.count && all.neighbor(k) < neighbor;) ++k;
    insert_entry(node, k, neighbor);
  }
  set_slot(node, k, label);
}

// Take words out of a block of labels; slots that point beyond them follow.
void Table::cut(Index node, u32 at, u32 size) {
  List& list = nodes_[node].labels;
  u32* block = pool_.data(list);
  std::copy(block + at + size, block + list.size, block + at);
  for (u32 k = 0; k < nodes_[node].labelled; ++k)
    if (block[2 * k + 1] & Labels::MANY && (block[2 * k + 1] & ~Labels::MANY) > at)
      block[2 * k + 1] -= size;
  pool_.resize(list, list.size - size);
}

void Table::insert_entry(Index node, u32 k, u32 neighbor) {
  List& list = nodes_[node].labels;
  pool_.resize(list, list.size + 2);
  u32* block = pool_.data(list);
  std::copy_backward(block + 2 * k, block + list.size - 2, block + list.size);
  block[2 * k] = neighbor;
  block[2 * k + 1] = 0;
  ++nodes_[node].labelled;
  for (u32 j = 0; j < nodes_[node].labelled; ++j)
    if (block[2 * j + 1] & Labels::MANY) block[2 * j + 1] += 2;
}

// Give an entry whose old nodes have been cut its new ones, at the end of the block.
void Table::set_slot(Index node, u32 k, const Indexes& label) {
  List& list = nodes_[node].labels;
  if (label.size() == 1) {
    pool_.data(list)[2 * k + 1] = label[0];
    return;
  }
  const u32 at = list.size;
  pool_.resize(list, at + u32(label.size()) + 1);
  u32* block = pool_.data(list);
  block[2 * k + 1] = at | Labels::MANY;
  block[at] = u32(label.size());
  std::copy(label.begin(), label.end(), block + at + 1);
}

void Table::set_labels(Index node, const Merged& merged) {
  u32 count = 0;
  for (size_t k = 0; k < merged.size(); k += 2 + merged[k + 1]) ++count;
  block_.clear();
  block_.resize(2 * count);
  u32 at = 0;
  for (size_t k = 0; k < merged.size(); k += 2 + merged[k + 1], at += 2) {
    const bool single = merged[k + 1] == 1;
    block_[at] = merged[k];
    block_[at + 1] = single ? merged[k + 2] : u32(block_.size()) | Labels::MANY;
    if (!single) block_.insert(block_.end(), &merged[k + 1], &merged[k + 2] + merged[k + 1]);
  }
  pool_.assign(nodes_[node].labels, block_.data(), u32(block_.size()));
  nodes_[node].labelled = count;
}

// -- nodes -------------------------------------------------------------------------------------

// A node that enters inherits the lowest of its parents' labels.
void Table::insert(u32 id, const std::vector<u32>& parents, const std::vector<u32>& children) {
  const Index node = insert_node(id, parents, children);
  const List up = nodes_[node].parents;
  const Indexes above(pool_.data(up), pool_.data(up) + up.size);
  merge(above, merged_);
  set_labels(node, merged_);
  compact();
}

void Table::remove(Index node) {
  if (subscribed(node))
    throw std::logic_error("node " + std::to_string(id(node)) + " still has subscribers");
  pool_.resize(nodes_[node].labels, 0);
  nodes_[node].labelled = 0;
  remove_node(node);
  compact();
}

// -- subscriptions -----------------------------------------------------------------------------

bool Table::attach(Index node, u32 neighbor) {
  if (holds(node, neighbor)) return false;
  if (neighbor >= held_.size()) held_.resize(neighbor + 1, 0);
  label_descendants(node, neighbor);
  label_.assign(1, node);
  set_label(node, neighbor, label_);
  note_holder(node, neighbor, true);
  ++held_[neighbor];
  compact();
  return true;
}

// The new node joins the labels of all descendants with nothing lower in them, and takes the
// place of what was above it. Every descendant must be looked at (`survey`).
void Table::label_descendants(Index node, u32 neighbor) {
  const Span before = label(node, neighbor);
  replaced_.assign(before.data, before.data + before.size);
  survey(node, neighbor);
  affected_.clear();
  for (Index each : below_)
    if (notes_[each] == OPEN) affected_.push_back(each);
  for (size_t k = 0; k < affected_.size(); ++k) {
    prefetch(affected_, k);
    replace(affected_[k], neighbor, node);
  }
}

// A walk over many nodes waits for memory most of the time unless it asks early.
void Table::prefetch(const Indexes& nodes, size_t k) const {
  if (k + 12 < nodes.size()) prefetch_node(nodes[k + 12]);
  if (k + 6 < nodes.size()) prefetch_labels(nodes[k + 6]);
}

// Put a node in the place of `replaced_` in a label.
void Table::replace(Index node, u32 neighbor, Index by) {
  const auto goes = [&](Index each) {
    return std::find(replaced_.begin(), replaced_.end(), each) != replaced_.end();
  };
  const Labels all = labels(node);
  const u32 k = all.find(neighbor);
  const Span span = k < all.count ? all.members(k) : Span{nullptr, 0};
  if (span.size == 1 && goes(span.data[0])) {  // most are
    pool_.data(nodes_[node].labels)[2 * k + 1] = by;
    return;
  }
  label_.clear();
  for (u32 k = 0; k < span.size; ++k)
    if (!goes(span.data[k])) label_.push_back(span.data[k]);
  const auto by_id = [&](Index a, Index b) { return id(a) < id(b); };
  label_.insert(std::lower_bound(label_.begin(), label_.end(), by, by_id), by);
  set_label(node, neighbor, label_);
}

bool Table::detach(Index node, u32 neighbor) {
  if (!holds(node, neighbor)) return false;
  lowest_held(node, neighbor, exposed_);
  find_affected(node, neighbor);
  unmark_all();
  if (exposed_.size() <= BITS)
    for (size_t k = 0; k < exposed_.size(); ++k) note(exposed_[k], u32(1) << k);
  for (size_t k = 0; k < affected_.size(); ++k) {
    prefetch(affected_, k);
    expose(node, affected_[k], neighbor);
  }
  note_holder(node, neighbor, false);
  --held_[neighbor];
  compact();
  return true;
}

// Where the node is in the neighbour's label; it is on every path down to there as well.
void Table::find_affected(Index node, u32 neighbor) {
  unmark_all();
  affected_.assign(1, node);
  for (size_t k = 0; k < affected_.size(); ++k) {
    const List list = nodes_[affected_[k]].children;
    const u32* children = pool_.data(list);
    for (u32 c = 0; c < list.size; ++c) {
      if (marked(children[c])) continue;
      mark(children[c]);
      const Span span = label(children[c], neighbor);
      if (std::find(span.data, span.data + span.size, node) != span.data + span.size)
        affected_.push_back(children[c]);
    }
  }
}

// The node goes from a label that has it. Whatever else is there stays; of what is held above the
// node (`exposed_`), that enters which is not above something that stays.
//
// The thesis (Figure 3-29) merges the labels of the parents instead, from the top down, which
// gives the same: whatever comes into the label was kept out of it by the node alone.
void Table::expose(Index node, Index below, u32 neighbor) {
  const Span span = label(below, neighbor);
  label_.clear();
  u32 hidden = 0;
  for (u32 k = 0; k < span.size; ++k) {
    if (span.data[k] == node) continue;
    label_.push_back(span.data[k]);
    if (exposed_.size() <= BITS) hidden |= noted_above(span.data[k]);
  }
  const bool alone = label_.empty();
  for (size_t k = 0; k < exposed_.size(); ++k)
    if (k >= BITS || !(hidden >> k & 1)) label_.push_back(exposed_[k]);
  if (!alone) {
    sort_by_id(label_);
    if (exposed_.size() > BITS) keep_lowest(label_);
  }
  set_label(below, neighbor, label_);
}

// D(node) into `below_`, and of each in notes_: HELD by the neighbour, and SHADOWED by a held node
// between. Parents usually come first; an OPEN one, whose shadow came late, is looked at again.
// The answer is kept: a set-up asks first, and the subscription follows.
void Table::survey(Index node, u32 neighbor) {
  if (surveyed_ == std::make_tuple(node, neighbor, walk())) return;
  unmark_all();
  below_.assign(1, node);
  late_.clear();
  for (size_t k = 0; k < below_.size(); ++k) {
    const Index each = below_[k];
    if (k + 6 < below_.size()) prefetch_lists(below_[k + 6], neighbor);
    if (k && holds(each, neighbor)) notes_[each] |= HELD;
    const bool shadow = k && notes_[each] & (HELD | SHADOWED);
    const List list = nodes_[each].children;
    const u32* children = pool_.data(list);
    for (u32 c = 0; c < list.size; ++c) {
      if (!marked(children[c])) {
        note(children[c], 0);
        prefetch_node(children[c]);
        below_.push_back(children[c]);
      }
      if (shadow) cast_shadow(children[c]);
    }
    if (k && !shadow) notes_[each] |= OPEN;
  }
  while (!late_.empty()) {
    const List list = nodes_[late_.back()].children;
    late_.pop_back();
    for (u32 c = 0; c < list.size; ++c) cast_shadow(pool_.data(list)[c]);
  }
  below_[0] = below_.back();
  below_.pop_back();
  surveyed_ = std::make_tuple(node, neighbor, walk());
}

void Table::prefetch_lists(Index node, u32 neighbor) const {
  __builtin_prefetch(pool_.data(nodes_[node].children));
  if (neighbor >= BITS) __builtin_prefetch(pool_.data(nodes_[node].labels) + 2 * neighbor);
}

void Table::cast_shadow(Index node) {
  if (notes_[node] & OPEN) late_.push_back(node);
  notes_[node] = (notes_[node] | SHADOWED) & ~OPEN;
}

// -- set-up ------------------------------------------------------------------------------------

void Table::position(Index node, u32 neighbor, Indexes& parents, Indexes& children) {
  lowest_held(node, neighbor, parents);
  highest_held(node, neighbor, children);
  sort_by_id(parents);
  sort_by_id(children);
}

// Where the neighbour is not subscribed to the node itself, the label is the answer.
void Table::lowest_held(Index node, u32 neighbor, Indexes& parents) {
  const Span span = label(node, neighbor);
  parents.assign(span.data, span.data + span.size);
  if (!holds(node, neighbor)) return;
  parents.clear();
  const List list = nodes_[node].parents;
  for (u32 p = 0; p < list.size; ++p) {
    const Span above = label(pool_.data(list)[p], neighbor);
    parents.insert(parents.end(), above.data, above.data + above.size);
  }
  sort_by_id(parents);
  parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  keep_lowest(parents);
}

void Table::highest_held(Index node, u32 neighbor, Indexes& children) {
  children.clear();
  survey(node, neighbor);
  for (Index each : below_)
    if (notes_[each] == HELD) children.push_back(each);
}

// -- sizes -------------------------------------------------------------------------------------

u64 Table::subscriptions() const {
  u64 sum = 0;
  for (u64 held : held_) sum += held;
  return sum;
}

u64 Table::all_labels() const {
  u64 sum = 0;
  for (Index node : nodes()) {
    const Labels all = labels(node);
    for (u32 k = 0; k < all.count; ++k) sum += all.members(k).size;
  }
  return sum;
}

u64 Table::bytes() const {
  return Graph::bytes() + held_.capacity() * sizeof(u64) + path_.capacity() * sizeof(path_[0]) +
         4 * (merged_.capacity() + block_.capacity() + label_.capacity() + replaced_.capacity() +
              exposed_.capacity() + affected_.capacity() + below_.capacity() +
              late_.capacity() + met_.capacity() +
              order_.capacity() + sorted_.capacity()) +
         8 * (want_.capacity() + lower_.capacity()) + entered_.capacity();
}

bool Table::accounts() const {
  u64 words = 0;
  bool agree = true;
  for (Index node : nodes()) {
    for (List list : {nodes_[node].parents, nodes_[node].children, nodes_[node].labels})
      words += list.size ? Pool::rounded(list.size) : 0;
    for (u32 neighbor = 0; neighbor < BITS; ++neighbor)
      agree &= holds(node, neighbor) == labelled_itself(node, neighbor);
  }
  return agree && words == pool_.live_words();
}

}  // namespace f3
