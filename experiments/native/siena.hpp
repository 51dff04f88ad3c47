// SIENA's forwarding: the extended counting algorithm with the selectivity table (Carzaniga and
// Wolf 2003, sections 4.1 and 4.3, Figures 4 and 7). A table is built once from all filters.
//
// Identical filters are kept apart, as in SIENA, or merged into one that leads to all their
// interfaces (up to 64 interfaces then).
#pragma once

#include <tsl/robin_map.h>

#include <map>
#include <memory>

#include "strings.hpp"

namespace opponents {

// Integer and string operators in one code: the latter follow the former.
enum Op { INT_EQUAL, INT_LESS, INT_GREATER, STRING_FIRST };

struct Input {
  uint32_t name;
  uint8_t op;
  int32_t value;  // of an integer, or the index of a word
};

struct Attribute {
  uint32_t name;
  bool is_string;
  int32_t value;
};

class Counting {
 public:
  Counting(uint32_t interfaces, uint32_t names, std::vector<std::string> words, bool merge)
      : interfaces_(interfaces), merge_(merge), words_(std::move(words)), index_(names),
        common_(interfaces), seen_(interfaces, false) {}
  Counting(const Counting&) = delete;

  void add(uint32_t interface, std::vector<Input> filter) {
    note_names(interface, filter);
    if (merge_) {
      std::vector<uint64_t> key;
      for (const Input& each : filter)
        key.push_back(uint64_t(each.name) << 40 | uint64_t(each.op) << 32 | uint32_t(each.value));
      std::sort(key.begin(), key.end());
      const auto [place, fresh] = same_.try_emplace(std::move(key), uint32_t(states_.size()));
      if (!fresh) {
        masks_[place->second] |= uint64_t(1) << interface;
        return;
      }
      masks_.push_back(uint64_t(1) << interface);
    }
    const uint32_t number = uint32_t(states_.size());
    states_.push_back({interface, 0, 0, uint16_t(filter.size())});
    for (const Input& each : filter) links_.push_back({constraint(each), number});
  }

  void build() {
    start_.assign(constraints_ + 1, 0);
    for (const auto& [constraint, filter] : links_) ++start_[constraint + 1];
    for (uint32_t k = 0; k < constraints_; ++k) start_[k + 1] += start_[k];
    filters_.resize(links_.size());
    std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
    for (const auto& [constraint, filter] : links_) filters_[next[constraint]++] = filter;
    std::vector<std::pair<Constraint, uint32_t>>().swap(links_);
    for (Name& name : index_) name.build();
    met_.assign(constraints_, 0);
    build_selectivity();
  }

  // The matched interfaces, in the order in which they were found.
  const std::vector<uint32_t>& match(const Attribute* message, size_t size, uint32_t rounds) {
    found_.clear();
    if (++stamp_ == 0) {
      for (State& each : states_) each.stamp = 0;
      std::fill(met_.begin(), met_.end(), 0);
      stamp_ = 1;
    }
    ignored_count_ = 0;
    ignored_.assign((interfaces_ + 63) / 64, 0);
    pre_process(message, size, rounds);
    for (size_t k = 0; k < size && ignored_count_ < interfaces_; ++k)
      if (message[k].name < index_.size()) match_attribute(message[k]);
    return found_;
  }

  size_t filters() const { return states_.size(); }
  size_t constraints() const { return constraints_; }

  size_t bytes() const {
    size_t total = states_.capacity() * sizeof(State) + masks_.capacity() * 8 +
                   (start_.capacity() + filters_.capacity() + met_.capacity()) * 4;
    for (const Name& name : index_) total += name.bytes();
    for (const auto& each : selectivity_) total += each.second.capacity() * 8;
    return total;
  }

 private:
  // All that a message needs to know of a filter, in one place: a table larger than the caches
  // is visited in no order.
  struct State {
    uint32_t leads_to, stamp;  // the message that was last counted
    uint16_t count, size;      // constraints met, and all of them
  };

  struct Name {
    tsl::robin_map<int32_t, Constraint> equal;
    std::map<int32_t, Constraint> less, greater;
    std::vector<std::pair<int32_t, Constraint>> less_run, greater_run;
    std::unique_ptr<StringIndex> strings;

    void build() {
      less_run.assign(less.begin(), less.end());
      greater_run.assign(greater.begin(), greater.end());
      if (strings) strings->build();
    }

    size_t bytes() const {
      return equal.bucket_count() * 16 + (less.size() + greater.size()) * (8 + 48) +
             (strings ? strings->bytes() : 0);
    }
  };

  Constraint constraint(const Input& input) {
    Name& name = index_[input.name];
    Constraint* place;
    if (input.op >= STRING_FIRST) {
      if (!name.strings) name.strings = std::make_unique<StringIndex>();
      place = &name.strings->at(StringOp(input.op - STRING_FIRST), words_[input.value]);
    } else if (input.op == INT_EQUAL) {
      place = &name.equal.try_emplace(input.value, NONE).first.value();
    } else {
      auto& run = input.op == INT_LESS ? name.less : name.greater;
      place = &run.try_emplace(input.value, NONE).first->second;
    }
    if (*place == NONE) *place = constraints_++;
    return *place;
  }

  void match_attribute(const Attribute& attribute) {
    const Name& name = index_[attribute.name];
    const auto found = [this](Constraint constraint) { satisfied(constraint); };
    if (attribute.is_string) {
      // A substring may occur several times: the constraint is satisfied once.
      if (name.strings)
        name.strings->match(words_[attribute.value], [this](Constraint constraint) {
          if (met_[constraint] == stamp_) return;
          met_[constraint] = stamp_;
          satisfied(constraint);
        });
      return;
    }
    const int32_t x = attribute.value;
    const auto equal = name.equal.find(x);
    if (equal != name.equal.end()) found(equal->second);
    for (auto each = name.less_run.rbegin(); each != name.less_run.rend() && each->first > x; ++each)
      found(each->second);
    for (auto each = name.greater_run.begin();
         each != name.greater_run.end() && each->first < x; ++each)
      found(each->second);
  }

  void satisfied(Constraint constraint) {
    for (uint32_t k = start_[constraint]; k < start_[constraint + 1]; ++k) {
      if (ignored_count_ == interfaces_) return;
      const uint32_t filter = filters_[k];
      State& state = states_[filter];
      if (merge_ ? !(masks_[filter] & ~ignored_[0]) : is_ignored(state.leads_to)) continue;
      if (state.stamp != stamp_) {
        state.stamp = stamp_;
        state.count = 0;
      }
      if (++state.count == state.size) matched(filter);
    }
  }

  bool is_ignored(uint32_t interface) const { return ignored_[interface / 64] >> interface % 64 & 1; }

  void matched(uint32_t filter) {
    if (!merge_) return output(states_[filter].leads_to);
    for (uint64_t due = masks_[filter] & ~ignored_[0]; due; due &= due - 1)
      output(uint32_t(__builtin_ctzll(due)));
  }

  void output(uint32_t interface) {
    found_.push_back(interface);
    ignored_[interface / 64] |= uint64_t(1) << interface % 64;
    ++ignored_count_;
  }

  // -- the selectivity table -------------------------------------------------------------------

  static constexpr size_t ROUNDS_MAX = 128;

  // The names that every filter of an interface has constraints on.
  void note_names(uint32_t interface, const std::vector<Input>& filter) {
    std::vector<uint32_t> names;
    for (const Input& each : filter) names.push_back(each.name);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::vector<uint32_t>& common = common_[interface];
    if (seen_[interface]) {
      std::vector<uint32_t> both;
      std::set_intersection(common.begin(), common.end(), names.begin(), names.end(),
                            std::back_inserter(both));
      common.swap(both);
    } else {
      seen_[interface] = true;
      common.swap(names);
    }
  }

  void build_selectivity() {
    std::vector<std::pair<uint32_t, uint32_t>> counted(index_.size());
    for (uint32_t name = 0; name < index_.size(); ++name) counted[name] = {0, name};
    for (const auto& names : common_)
      for (uint32_t name : names) ++counted[name].first;
    std::sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<int32_t> place(index_.size(), -1);
    selectivity_.clear();
    for (const auto& [count, name] : counted) {
      if (!count || selectivity_.size() == ROUNDS_MAX) break;
      place[name] = int32_t(selectivity_.size());
      selectivity_.push_back({name, std::vector<uint64_t>((interfaces_ + 63) / 64, 0)});
    }
    for (uint32_t interface = 0; interface < interfaces_; ++interface)
      for (uint32_t name : common_[interface])
        if (place[name] >= 0)
          selectivity_[place[name]].second[interface / 64] |= uint64_t(1) << interface % 64;
    std::vector<std::vector<uint32_t>>().swap(common_);
  }

  void pre_process(const Attribute* message, size_t size, uint32_t rounds) {
    bool any = false;
    for (size_t round = 0; round < rounds && round < selectivity_.size(); ++round) {
      const auto& [name, excluded] = selectivity_[round];
      bool present = false;
      for (size_t k = 0; k < size; ++k) present |= message[k].name == name;
      if (present) continue;
      any = true;
      for (size_t word = 0; word < excluded.size(); ++word) ignored_[word] |= excluded[word];
    }
    if (any)
      for (uint64_t word : ignored_) ignored_count_ += uint32_t(__builtin_popcountll(word));
  }

  uint32_t interfaces_;
  bool merge_;
  std::vector<std::string> words_;
  std::vector<Name> index_;
  uint32_t constraints_ = 0;
  // By filter, and merged ones' interfaces.
  std::vector<State> states_;
  std::vector<uint64_t> masks_;
  std::map<std::vector<uint64_t>, uint32_t> same_;
  // By constraint, its filters: filters_[start_[c]] to filters_[start_[c + 1]].
  std::vector<std::pair<Constraint, uint32_t>> links_;
  std::vector<uint32_t> start_, filters_;
  // The state of one message.
  std::vector<uint32_t> met_, found_;
  std::vector<uint64_t> ignored_;
  uint32_t stamp_ = 0, ignored_count_ = 0;
  // The selectivity table: names by how many interfaces they exclude, most first.
  std::vector<std::vector<uint32_t>> common_;
  std::vector<bool> seen_;
  std::vector<std::pair<uint32_t, std::vector<uint64_t>>> selectivity_;
};

}  // namespace opponents
