// What a header becomes for each neighbour: the lowest of all its nodes' labels (Figure 3-18).
#include <algorithm>

#include "table.hpp"

namespace f3 {

// Reducing neighbour by neighbour would walk the same ancestors again and again; here one walk
// serves 64 neighbours, a bit each.
void Table::merge(const Indexes& header, Merged& merged) {
  merged.clear();
  constexpr u32 LAST = ~u32(0);
  for (u32 first = 0; first != LAST;) {
    u32 next = LAST;
    gather(header, first, next);
    if (twice_) propagate();
    if (seen_) emit(first, merged);
    first = next;
  }
}

// Who wants which label, of the neighbours from `first` on; `next` is the first one beyond them.
void Table::gather(const Indexes& header, u32 first, u32& next) {
  unmark_all();
  met_.clear();
  want_.clear();
  seen_ = twice_ = 0;
  for (Index node : header) {
    const Labels all = labels(node);
    for (u32 k = 0; k < all.count; ++k) {
      if (all.neighbor(k) < first) continue;
      if (all.neighbor(k) - first >= 64) {
        next = std::min(next, first + 64);
        break;
      }
      want(all.members(k), u64(1) << (all.neighbor(k) - first));
    }
  }
}

void Table::want(Span label, u64 bit) {
  for (u32 k = 0; k < label.size; ++k) {
    const Index node = label.data[k];
    if (!marked(node)) {
      note(node, u32(met_.size()));
      met_.push_back(node);
      want_.push_back(0);
    }
    u64& wanted = want_[notes_[node]];
    if (wanted & bit) continue;
    wanted |= bit;
    twice_ |= seen_ & bit;
    seen_ |= bit;
  }
}

// From every label up to the roots, children before parents: who wants something lower.
void Table::propagate() {
  lower_.assign(met_.size(), 0);
  entered_.assign(met_.size(), 0);
  order_.clear();
  for (size_t k = 0; k < met_.size(); ++k)
    if (!entered_[k]) ascend(met_[k]);
  for (size_t k = order_.size(); k--;) {
    const Index node = order_[k];
    const u32 note = notes_[node];
    const u64 mask = ((note < met_.size() ? want_[note] : 0) | lower_[note]) & twice_;
    if (!mask) continue;
    const List list = nodes_[node].parents;
    const u32* parents = pool_.data(list);
    for (u32 p = 0; p < list.size; ++p) lower_[notes_[parents[p]]] |= mask;
  }
}

// A node and its ancestors into the order, each after its own ancestors.
void Table::ascend(Index start) {
  entered_[notes_[start]] = 1;
  path_.assign(1, {start, 0});
  while (!path_.empty()) {
    const List list = nodes_[path_.back().first].parents;
    if (path_.back().second == list.size) {
      order_.push_back(path_.back().first);
      path_.pop_back();
      continue;
    }
    const Index parent = pool_.data(list)[path_.back().second++];
    if (!marked(parent)) {
      mark(parent);
      notes_[parent] = u32(lower_.size());
      lower_.push_back(0);
      entered_.push_back(0);
    }
    if (entered_[notes_[parent]]) continue;
    entered_[notes_[parent]] = 1;
    path_.push_back({parent, 0});
  }
}

void Table::emit(u32 first, Merged& merged) {
  if (twice_)
    for (size_t k = 0; k < met_.size(); ++k) want_[k] &= ~lower_[k];
  sorted_ = met_;
  sort_by_id(sorted_);
  for (u64 left = seen_; left; left &= left - 1) {
    const u64 bit = left & -left;
    merged.push_back(first + u32(__builtin_ctzll(left)));
    const size_t at = merged.size();
    merged.push_back(0);
    for (Index node : sorted_)
      if (want_[notes_[node]] & bit) merged.push_back(node);
    merged[at] = u32(merged.size() - at - 1);
  }
}

}  // namespace f3
