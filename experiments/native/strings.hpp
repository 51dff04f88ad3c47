// The multi-operator index for strings: a ternary search trie whose nodes carry prefix and
// substring constraints, whose ends carry =, suffix, < and > ones, and whose ends are numbered in
// alphabetical order, so that the < and > constraints of a value are two runs (Carzaniga and Wolf
// 2003, section 4.2, Figure 6).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opponents {

using Constraint = uint32_t;
constexpr Constraint NONE = ~Constraint(0);

enum StringOp { EQUAL, PREFIX, SUFFIX, SUBSTRING, LESS, GREATER };

class StringIndex {
 public:
  // The place for a constraint, to be filled in by the caller if it is NONE.
  Constraint& at(StringOp op, std::string_view value) {
    const int32_t node = insert(value);
    return value.empty() ? whole_[op] : nodes_[node].constraint[op];
  }

  // To be called after the last `at`: numbers the ends and gathers the chains.
  void build() {
    less_.clear();
    greater_.clear();
    ends_ = 0;
    if (whole_[LESS] != NONE) less_.push_back({0, whole_[LESS]});
    if (whole_[GREATER] != NONE) greater_.push_back({0, whole_[GREATER]});
    number(root_);
  }

  template <class Found>
  void match(std::string_view value, Found&& found) const {
    if (whole_[PREFIX] != NONE) found(whole_[PREFIX]);
    if (whole_[SUBSTRING] != NONE) found(whole_[SUBSTRING]);
    if (whole_[SUFFIX] != NONE) found(whole_[SUFFIX]);
    if (value.empty() && whole_[EQUAL] != NONE) found(whole_[EQUAL]);
    const auto [before, exact] = walk(value, true, found);
    for (size_t k = 1; k < value.size(); ++k) walk(value.substr(k), false, found);
    // Whatever is below the value in the order is at most `before`; the value itself is neither.
    const auto number = [](const Chained& link, uint32_t end) { return link.end < end; };
    const uint32_t above = before + (exact ? 1 : 0);
    for (auto link = greater_.begin(); link != greater_.end() && link->end < before; ++link)
      if (!value.empty()) found(link->constraint);
    auto link = std::lower_bound(less_.begin(), less_.end(), above, number);
    if (value.empty()) link = std::lower_bound(less_.begin(), less_.end(), 1u, number);
    for (; link != less_.end(); ++link) found(link->constraint);
  }

  size_t bytes() const {
    return nodes_.capacity() * sizeof(Node) +
           (less_.capacity() + greater_.capacity()) * sizeof(Chained);
  }

 private:
  struct Node {
    char letter;
    int32_t low = -1, next = -1, high = -1;
    // Ends are numbered from 1; those in `next` and at this node are first to last.
    uint32_t first = 0, last = 0;
    Constraint constraint[6] = {NONE, NONE, NONE, NONE, NONE, NONE};

    bool is_end() const {
      return constraint[EQUAL] != NONE || constraint[SUFFIX] != NONE ||
             constraint[LESS] != NONE || constraint[GREATER] != NONE;
    }
  };

  struct Chained {
    uint32_t end;
    Constraint constraint;
  };

  int32_t insert(std::string_view value) {
    int32_t node = -1;
    int32_t* link = &root_;
    int32_t at = root_;
    // Links are looked up anew after every push: the vector moves.
    int32_t parent = -1;
    int side = 0;
    for (size_t k = 0; k < value.size();) {
      if (at < 0) {
        nodes_.push_back({value[k]});
        at = int32_t(nodes_.size()) - 1;
        link = parent < 0 ? &root_ : side == 0 ? &nodes_[parent].low
                                 : side == 1   ? &nodes_[parent].next
                                               : &nodes_[parent].high;
        *link = at;
      }
      parent = at;
      const char letter = nodes_[at].letter;
      if (value[k] == letter) {
        node = at;
        ++k;
        side = 1;
        at = nodes_[at].next;
      } else if (uint8_t(value[k]) < uint8_t(letter)) {
        side = 0;
        at = nodes_[at].low;
      } else {
        side = 2;
        at = nodes_[at].high;
      }
    }
    return node;
  }

  void number(int32_t at) {
    if (at < 0) return;
    number(nodes_[at].low);
    nodes_[at].first = ends_ + 1;
    if (nodes_[at].is_end()) {
      ++ends_;
      if (nodes_[at].constraint[LESS] != NONE)
        less_.push_back({ends_, nodes_[at].constraint[LESS]});
      if (nodes_[at].constraint[GREATER] != NONE)
        greater_.push_back({ends_, nodes_[at].constraint[GREATER]});
    }
    number(nodes_[at].next);
    nodes_[at].last = ends_;
    number(nodes_[at].high);
  }

  // Follows a value down and tells of what it meets. Returns the number of the first end that is
  // not before the value (one beyond the last, if none is), and whether that end is the value.
  template <class Found>
  std::pair<uint32_t, bool> walk(std::string_view value, bool whole, Found&& found) const {
    int32_t at = root_;
    uint32_t after = ends_ + 1;
    for (size_t k = 0; k < value.size();) {
      if (at < 0) return {after, false};
      const Node& node = nodes_[at];
      if (value[k] == node.letter) {
        if (whole && node.constraint[PREFIX] != NONE) found(node.constraint[PREFIX]);
        if (node.constraint[SUBSTRING] != NONE) found(node.constraint[SUBSTRING]);
        if (++k == value.size()) {
          if (node.constraint[SUFFIX] != NONE) found(node.constraint[SUFFIX]);
          if (whole && node.constraint[EQUAL] != NONE) found(node.constraint[EQUAL]);
          return {node.first, node.is_end()};
        }
        after = node.last + 1;
        at = node.next;
      } else if (uint8_t(value[k]) < uint8_t(node.letter)) {
        after = node.first;
        at = node.low;
      } else {
        at = node.high;
      }
    }
    return {after, false};
  }

  std::vector<Node> nodes_;
  int32_t root_ = -1;
  uint32_t ends_ = 0;
  // Constraints on the empty string, which has no node.
  Constraint whole_[6] = {NONE, NONE, NONE, NONE, NONE, NONE};
  std::vector<Chained> less_, greater_;
};

}  // namespace opponents
