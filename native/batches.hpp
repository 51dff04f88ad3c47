// Batches of notifications as Python has them: dataclasses whose columns are bytes objects.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "forward.hpp"

namespace f3 {

namespace nb = nanobind;

inline nb::object steal(PyObject* object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

// Batches and what routing makes of them are frozen dataclasses with slots; setting each slot by
// way of their own constructors would take longer than routing.
struct Dataclass {
  nb::object type;
  std::vector<nb::object> fields;

  Dataclass(const char* module, const char* name, std::initializer_list<const char*> names) {
    type = nb::module_::import_(module).attr(name);
    for (const char* each : names) fields.push_back(steal(PyUnicode_InternFromString(each)));
  }

  nb::object make(std::initializer_list<nb::handle> values) const {
    auto* cls = reinterpret_cast<PyTypeObject*>(type.ptr());
    nb::object made = steal(cls->tp_alloc(cls, 0));
    const nb::object* field = fields.data();
    for (nb::handle value : values)
      if (PyObject_GenericSetAttr(made.ptr(), (field++)->ptr(), value.ptr()))
        throw nb::python_error();
    return made;
  }
};

struct Classes {
  Dataclass batch{"routing.batch",
                  "Batch",
                  {"header_offsets", "nodes", "positions", "payload_offsets", "payloads", "traces"}};
  Dataclass routed{"routing.table", "Routed", {"batches", "unknown"}};

  // Never freed: at exit the interpreter goes first.
  static const Classes& get() {
    static const Classes* classes = new Classes;
    return *classes;
  }
};

struct PyColumns : Columns {
  nb::object objects[6];

  PyColumns(nb::handle batch, const Dataclass& type) {
    Bytes* columns[] = {&header_offsets, &nodes, &positions, &payload_offsets, &payloads, &traces};
    for (int k = 0; k < 6; ++k) {
      objects[k] = steal(PyObject_GetAttr(batch.ptr(), type.fields[size_t(k)].ptr()));
      if (!PyBytes_Check(objects[k].ptr())) throw nb::type_error("a column must be bytes");
      *columns[k] = Bytes(PyBytes_AS_STRING(objects[k].ptr()),
                          size_t(PyBytes_GET_SIZE(objects[k].ptr())));
    }
  }
};

inline nb::object new_bytes(size_t size) {
  return steal(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(size)));
}

inline char* writable(const nb::object& bytes) { return PyBytes_AS_STRING(bytes.ptr()); }

// The same object where the content has not changed.
inline nb::object column(const nb::object& before, Bytes content, const std::vector<u32>& words,
                  size_t size) {
  if (content.size() == 4 * size && !std::memcmp(content.data(), words.data(), 4 * size))
    return before;
  return steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(words.data()),
                                         Py_ssize_t(4 * size)));
}

inline nb::object gather_positions(const Columns& columns, const Due& due) {
  nb::object chosen = new_bytes(8 * size_t(due.count));
  char* to = writable(chosen);
  for (u32 k = 0; k < due.count; ++k, to += 8)
    std::memcpy(to, columns.positions.data() + 8 * size_t(due.rows[k]), 8);
  return chosen;
}

inline std::pair<nb::object, nb::object> gather_payloads(const Columns& columns, const Due& due) {
  nb::object ends = new_bytes(4 * (size_t(due.count) + 1));
  u32 end = 0;
  std::memcpy(writable(ends), &end, 4);
  for (u32 k = 0; k < due.count; ++k) {
    const u32 row = due.rows[k];
    end += u32_at(columns.payload_offsets, row + 1) - u32_at(columns.payload_offsets, row);
    std::memcpy(writable(ends) + 4 * (size_t(k) + 1), &end, 4);
  }
  nb::object chosen = new_bytes(end);
  char* to = writable(chosen);
  for (u32 k = 0; k < due.count; ++k) {
    const u32 begin = u32_at(columns.payload_offsets, due.rows[k]);
    const u32 size = u32_at(columns.payload_offsets, due.rows[k] + 1) - begin;
    std::memcpy(to, columns.payloads.data() + begin, size);
    to += size;
  }
  return {ends, chosen};
}

// Contexts of the rows that are due, numbered anew; both are in the order of rows.
inline nb::object gather_traces(const Columns& columns, const Due& due) {
  std::string chosen;
  u32 k = 0;
  for (size_t at = 0; at < columns.traces.size(); at += TRACE_RECORD) {
    const u32 row = u32_at(columns.traces.substr(at), 0);
    while (k < due.count && due.rows[k] < row) ++k;
    if (k == due.count || due.rows[k] != row) continue;
    chosen.append(reinterpret_cast<const char*>(&k), 4);
    chosen.append(columns.traces.substr(at + 4, TRACE_RECORD - 4));
  }
  return steal(PyBytes_FromStringAndSize(chosen.data(), Py_ssize_t(chosen.size())));
}

}  // namespace f3
