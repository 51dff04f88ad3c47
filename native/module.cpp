// routing._native: the compiled forwarding table for Python (routing/native.py).
//
// Whatever comes in is checked before it is used: an identifier that is not in the table is
// unknown, columns must fit together, and an illegal request is a ProtocolError before any change.
#include <nanobind/nanobind.h>

#include <algorithm>

#include "batches.hpp"
#include "forward.hpp"
#include "names.hpp"

namespace nb = nanobind;

namespace {

using namespace f3;

// -- numbers -----------------------------------------------------------------------------------

// False where an integer is no identifier; TypeError where it is no integer.
bool read_id(nb::handle object, u32& id) {
  if (!PyLong_Check(object.ptr())) throw nb::type_error("a node identifier must be an int");
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  id = u32(value);
  return !overflow && value >= 0 && value <= 0xFFFFFFFFll;
}

u32 checked_id(nb::handle object) {
  u32 id;
  if (!read_id(object, id))
    throw ProtocolError(std::string(nb::str(object).c_str()) +
                        " is no node identifier: they go from 0 to 4294967295");
  return id;
}

// Identifiers in rising order without duplicates.
std::vector<u32> checked_ids(nb::handle sequence) {
  std::vector<u32> ids;
  for (nb::handle each : sequence) ids.push_back(checked_id(each));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

nb::object id_tuple(const Table& table, const u32* nodes, size_t size) {
  nb::object tuple = steal(PyTuple_New(Py_ssize_t(size)));
  for (size_t k = 0; k < size; ++k)
    PyTuple_SET_ITEM(tuple.ptr(), Py_ssize_t(k),
                     steal(PyLong_FromUnsignedLong(table.id(nodes[k]))).release().ptr());
  return tuple;
}

nb::object id_tuple(const Table& table, const Indexes& nodes) {
  return id_tuple(table, nodes.data(), nodes.size());
}

nb::object id_set(const Table& table, const Indexes& nodes) {
  nb::object set = steal(PySet_New(nullptr));
  for (Index node : nodes) {
    const nb::object id = steal(PyLong_FromUnsignedLong(table.id(node)));
    if (PySet_Add(set.ptr(), id.ptr())) throw nb::python_error();
  }
  return set;
}

// -- the table ---------------------------------------------------------------------------------

class NativeTable {
 public:
  NativeTable() : forwarder_(table_) {}

  void insert(nb::handle id, nb::handle parents, nb::handle children) {
    table_.insert(checked_id(id), checked_ids(parents), checked_ids(children));
    forwarder_.forget();
  }

  void remove(nb::handle id) {
    const Index node = find(id);
    if (node == Table::ABSENT)
      throw ProtocolError("node " + std::string(nb::str(id).c_str()) +
                          " is not in the graph, so it cannot be removed");
    table_.remove(node);
    forwarder_.forget();
  }

  bool contains(nb::handle id) const { return find(id) != Table::ABSENT; }

  void attach(nb::handle id, nb::str neighbor) {
    const Index node = present(id);
    if (table_.attach(node, names_.number(neighbor))) forwarder_.forget();
  }

  void detach(nb::handle id, nb::str neighbor) {
    const u32 number = names_.find(neighbor);
    if (number == Names::ABSENT) throw nb::key_error(neighbor.c_str());
    if (!table_.detach(present(id), number)) throw nb::key_error(nb::str(id).c_str());
    if (!table_.held(number)) names_.release(number);
    forwarder_.forget();
  }

  nb::object subs(nb::str neighbor) const {
    const u32 number = names_.find(neighbor);
    Indexes held;
    if (number != Names::ABSENT)
      for (Index node : table_.nodes())
        if (table_.holds(node, number)) held.push_back(node);
    return id_set(table_, held);
  }

  nb::object neighbors() const { return names_.all(); }

  nb::object subscribers(nb::handle id) const {
    nb::object set = steal(PySet_New(nullptr));
    const Index node = find(id);
    if (node == Table::ABSENT) return set;
    const Labels all = table_.labels(node);
    for (u32 k = 0; k < all.count; ++k)
      if (all.single(k, node) && PySet_Add(set.ptr(), names_.name(all.neighbor(k)).ptr()))
        throw nb::python_error();
    return set;
  }

  // (parents, children): where a node stands in the graph of what the neighbour holds.
  nb::object position(nb::handle id, nb::str neighbor) {
    const Index node = find(id);
    const u32 number = names_.find(neighbor);
    Indexes parents, children;
    if (node != Table::ABSENT && number != Names::ABSENT)
      table_.position(node, number, parents, children);
    return nb::make_tuple(id_tuple(table_, parents), id_tuple(table_, children));
  }

  nb::object label(nb::handle id, nb::str neighbor) const {
    const Index node = present(id);
    const u32 number = names_.find(neighbor);
    const Span span = number == Names::ABSENT ? Span{nullptr, 0} : table_.label(node, number);
    return id_set(table_, Indexes(span.data, span.data + span.size));
  }

  nb::object route(nb::handle header) {
    table_.merge(known(header), merged_);
    nb::object routed = steal(PyDict_New());
    // Answers come by number, and are due by name.
    std::vector<std::pair<u32, size_t>> found;
    for (size_t k = 0; k < merged_.size(); k += 2 + merged_[k + 1])
      found.emplace_back(names_.rank(merged_[k]), k);
    std::sort(found.begin(), found.end());
    for (const auto& [rank, k] : found) {
      const nb::object nodes = id_tuple(table_, &merged_[k + 2], merged_[k + 1]);
      if (PyDict_SetItem(routed.ptr(), names_.name(merged_[k]).ptr(), nodes.ptr()))
        throw nb::python_error();
    }
    return routed;
  }

  nb::object route_batch(nb::object batch) {
    const PyColumns columns(batch, classes_.batch);
    columns.check();
    forwarder_.route(columns);
    std::vector<u32> neighbors(forwarder_.neighbors());
    std::sort(neighbors.begin(), neighbors.end(),
              [&](u32 a, u32 b) { return names_.rank(a) < names_.rank(b); });
    nb::object routed = steal(PyDict_New());
    for (u32 neighbor : neighbors) {
      const nb::object due = select(batch, columns, forwarder_.due(neighbor));
      if (PyDict_SetItem(routed.ptr(), names_.name(neighbor).ptr(), due.ptr()))
        throw nb::python_error();
    }
    return classes_.routed.make({routed, nb::int_(forwarder_.unknown())});
  }

  nb::object covering(nb::handle header) {
    Indexes found;
    table_.covering(known(header), found);
    return id_set(table_, found);
  }

  nb::list unknown(nb::handle header) const {
    nb::list missing;
    for (nb::handle each : header)
      if (find(each) == Table::ABSENT) missing.append(each);
    return missing;
  }

  // The lowest of some nodes, sorted; those that are not in the table left out.
  nb::object lowest(nb::handle nodes) {
    Indexes found = known(nodes);
    table_.sort_by_id(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    table_.keep_lowest(found);
    return id_tuple(table_, found);
  }

  // (nodes, edges, subscriptions, labels)
  nb::object size() const {
    return nb::make_tuple(table_.size(), table_.edges(), table_.subscriptions(),
                          table_.all_labels());
  }

  u64 bytes() const { return table_.bytes() + forwarder_.bytes(); }

  // Every node as (identifier, parents, children, {neighbour: label}).
  nb::list dump() const {
    nb::list all;
    for (Index node : table_.nodes()) {
      nb::dict labels;
      const Labels own = table_.labels(node);
      for (u32 k = 0; k < own.count; ++k) {
        const Span span = own.members(k);
        labels[names_.name(own.neighbor(k))] = id_tuple(table_, span.data, span.size);
      }
      all.append(nb::make_tuple(table_.id(node), linked(table_.parents(node)),
                                linked(table_.children(node)), labels));
    }
    return all;
  }

  bool accounts() const { return table_.accounts(); }

 private:
  Index find(nb::handle id) const {
    u32 number;
    return read_id(id, number) ? table_.find(number) : Table::ABSENT;
  }

  Index present(nb::handle id) const {
    const Index node = find(id);
    if (node == Table::ABSENT) throw nb::key_error(nb::str(id).c_str());
    return node;
  }

  Indexes known(nb::handle header) const {
    Indexes nodes;
    for (nb::handle each : header) {
      const Index node = find(each);
      if (node != Table::ABSENT) nodes.push_back(node);
    }
    return nodes;
  }

  nb::object linked(List list) const {
    Indexes nodes(table_.words(list), table_.words(list) + list.size);
    table_.sort_by_id(nodes);
    return id_tuple(table_, nodes);
  }

  // What one neighbour is due, sharing every column that is as it was.
  nb::object select(const nb::object& batch, const PyColumns& in, const Due& due) const {
    const nb::object ends = column(in.objects[0], in.header_offsets, due.ends, due.count + 1);
    const nb::object nodes = column(in.objects[1], in.nodes, due.nodes, due.width);
    if (due.count == in.count()) {
      if (ends.is(in.objects[0]) && nodes.is(in.objects[1])) return batch;
      return classes_.batch.make(
          {ends, nodes, in.objects[2], in.objects[3], in.objects[4], in.objects[5]});
    }
    const auto [payload_offsets, payloads] = gather_payloads(in, due);
    const nb::object positions = gather_positions(in, due);
    const nb::object traces = in.traces.empty() ? in.objects[5] : gather_traces(in, due);
    return classes_.batch.make({ends, nodes, positions, payload_offsets, payloads, traces});
  }

  Table table_;
  Forwarder forwarder_;
  Names names_;
  Merged merged_;
  const Classes& classes_ = Classes::get();
};

// One column of offsets of several: each goes on where the last one ended.
nb::object join_offsets(nb::list columns) {
  size_t words = 1;
  for (nb::handle each : columns) {
    if (!PyBytes_Check(each.ptr())) throw nb::type_error("a column must be bytes");
    const size_t size = size_t(PyBytes_GET_SIZE(each.ptr()));
    if (size < 4 || size % 4) throw nb::value_error("a column of offsets has no whole number");
    words += size / 4 - 1;
  }
  nb::object joined = new_bytes(4 * words);
  char* to = writable(joined);
  u64 base = 0;
  std::memcpy(to, &base, 4);
  to += 4;
  for (nb::handle each : columns) {
    const Bytes column(PyBytes_AS_STRING(each.ptr()), size_t(PyBytes_GET_SIZE(each.ptr())));
    const size_t count = column.size() / 4 - 1;
    if (base + u32_at(column, count) > ~u32(0)) throw nb::value_error("the offsets are too large");
    for (size_t k = 1; k <= count; ++k, to += 4) {
      const u32 offset = u32(base) + u32_at(column, k);
      std::memcpy(to, &offset, 4);
    }
    base += u32_at(column, count);
  }
  return joined;
}

void validate(nb::handle batch) { PyColumns(batch, Classes::get().batch).validate(); }

}  // namespace

NB_MODULE(_native, module) {
  // A table that lives as long as the process is no leak.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(
      [](const std::exception_ptr& error, void*) {
        try {
          std::rethrow_exception(error);
        } catch (const ProtocolError& refused) {
          const nb::object type = nb::module_::import_("routing.errors").attr("ProtocolError");
          PyErr_SetString(type.ptr(), refused.what());
        }
      },
      nullptr);
  module.def("join_offsets", &join_offsets, "routing.batch.join_offsets, compiled.");
  module.def("validate", &validate, "Batch.validate, compiled.");
  nb::class_<NativeTable>(module, "Table")
      .def(nb::init<>())
      .def("insert", &NativeTable::insert)
      .def("remove", &NativeTable::remove)
      .def("contains", &NativeTable::contains)
      .def("attach", &NativeTable::attach)
      .def("detach", &NativeTable::detach)
      .def("subs", &NativeTable::subs)
      .def("subscribers", &NativeTable::subscribers)
      .def("neighbors", &NativeTable::neighbors)
      .def("position", &NativeTable::position)
      .def("label", &NativeTable::label)
      .def("route", &NativeTable::route)
      .def("route_batch", &NativeTable::route_batch)
      .def("covering", &NativeTable::covering)
      .def("unknown", &NativeTable::unknown)
      .def("lowest", &NativeTable::lowest)
      .def("size", &NativeTable::size)
      .def("bytes", &NativeTable::bytes)
      .def("dump", &NativeTable::dump)
      .def("accounts", &NativeTable::accounts);
}
