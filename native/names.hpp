// Neighbours' names: small numbers inside the table, Python strings outside.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <vector>

#include "pool.hpp"

namespace f3 {

class Names {
 public:
  static constexpr u32 ABSENT = ~u32(0);

  u32 find(const nanobind::str& name) const {
    PyObject* number = PyDict_GetItemWithError(numbers_.ptr(), name.ptr());
    if (!number) {
      if (PyErr_Occurred()) throw nanobind::python_error();
      return ABSENT;
    }
    return u32(PyLong_AsUnsignedLong(number));
  }

  // The number of a name, a new one if it has none; one that was given up is used again.
  u32 number(const nanobind::str& name) {
    u32 number = find(name);
    if (number != ABSENT) return number;
    if (unused_.empty()) {
      number = u32(names_.size());
      names_.emplace_back();
    } else {
      number = unused_.back();
      unused_.pop_back();
    }
    names_[number] = name;
    numbers_[name] = number;
    rank_all();
    return number;
  }

  void release(u32 number) {
    nanobind::del(numbers_[names_[number]]);
    names_[number] = nanobind::object();
    unused_.push_back(number);
    rank_all();
  }

  nanobind::object all() const {
    PyObject* set = PySet_New(numbers_.ptr());
    if (!set) throw nanobind::python_error();
    return nanobind::steal(set);
  }

  nanobind::handle name(u32 number) const { return names_[number]; }

  // Where the name stands among all names, in Python's order.
  u32 rank(u32 number) const { return ranks_[number]; }

 private:
  void rank_all() {
    nanobind::list sorted(numbers_.keys());
    if (PyList_Sort(sorted.ptr())) throw nanobind::python_error();
    ranks_.assign(names_.size(), 0);
    u32 rank = 0;
    for (nanobind::handle name : sorted)
      ranks_[find(nanobind::borrow<nanobind::str>(name))] = rank++;
  }

  nanobind::dict numbers_;
  std::vector<nanobind::object> names_;
  std::vector<u32> unused_;
  std::vector<u32> ranks_;
};

}  // namespace f3
