// experiments._opponents: what F3's compiled table is timed against (experiments/opponents.py).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "lists.hpp"
#include "siena.hpp"

namespace nb = nanobind;
using namespace opponents;

namespace {

// A column of numbers, copied out of bytes.
template <class Number>
std::vector<Number> column(const nb::bytes& bytes) {
  if (bytes.size() % sizeof(Number)) throw nb::value_error("a column is cut off");
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

void check_offsets(const std::vector<uint32_t>& offsets, size_t end) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != end ||
      !std::is_sorted(offsets.begin(), offsets.end()))
    throw nb::value_error("the offsets do not cover the entries");
}

size_t subscribe(Lists& lists, const nb::bytes& ids, unsigned neighbor) {
  if (neighbor > 63) throw nb::value_error("neighbours are numbered from 0 to 63");
  if (ids.size() % 4) throw nb::value_error("a column is cut off");
  return lists.subscribe(static_cast<const uint32_t*>(ids.data()), ids.size() / 4, neighbor);
}

// Per header the set of neighbours, as bits.
nb::bytes route(const Lists& lists, const nb::bytes& offsets, const nb::bytes& nodes) {
  const auto starts = column<uint32_t>(offsets);
  check_offsets(starts, nodes.size() / 4);
  const auto* ids = static_cast<const uint32_t*>(nodes.data());
  std::vector<uint64_t> due(starts.size() - 1);
  for (size_t k = 0; k < due.size(); ++k)
    due[k] = lists.route(ids + starts[k], starts[k + 1] - starts[k]);
  return nb::bytes(reinterpret_cast<const char*>(due.data()), due.size() * 8);
}

nb::bytes as_bytes(const void* data, size_t size) {
  return nb::bytes(static_cast<const char*>(data), size);
}

// What one neighbour is sent: the rows with its bit, as the columns of a batch (routing/batch.py).
nb::tuple rows_of(const std::vector<uint64_t>& due, unsigned neighbor,
                  const std::vector<uint32_t>& header_at, const nb::bytes& nodes,
                  const std::vector<uint32_t>& payload_at, const nb::bytes& payloads) {
  std::vector<uint32_t> headers{0}, ends{0}, ids;
  std::vector<uint64_t> positions;
  std::string bodies;
  const auto* id = static_cast<const uint32_t*>(nodes.data());
  const char* body = payloads.c_str();
  for (size_t k = 0; k < due.size(); ++k) {
    if (!(due[k] >> neighbor & 1)) continue;
    positions.push_back(k + 1);
    ids.insert(ids.end(), id + header_at[k], id + header_at[k + 1]);
    headers.push_back(uint32_t(ids.size()));
    bodies.append(body + payload_at[k], payload_at[k + 1] - payload_at[k]);
    ends.push_back(uint32_t(bodies.size()));
  }
  return nb::make_tuple(as_bytes(headers.data(), headers.size() * 4),
                        as_bytes(ids.data(), ids.size() * 4),
                        as_bytes(positions.data(), positions.size() * 8),
                        as_bytes(ends.data(), ends.size() * 4),
                        as_bytes(bodies.data(), bodies.size()));
}

// A batch for each neighbour that is due anything; the columns that came in where it is due all.
nb::list gather(const nb::bytes& due_bits, unsigned neighbors, const nb::bytes& header_offsets,
                const nb::bytes& nodes, const nb::bytes& payload_offsets,
                const nb::bytes& payloads) {
  const auto due = column<uint64_t>(due_bits);
  const auto header_at = column<uint32_t>(header_offsets);
  const auto payload_at = column<uint32_t>(payload_offsets);
  check_offsets(header_at, nodes.size() / 4);
  check_offsets(payload_at, payloads.size());
  if (header_at.size() != due.size() + 1 || payload_at.size() != due.size() + 1)
    throw nb::value_error("the columns differ in length");
  uint64_t any = 0, all = ~uint64_t(0);
  for (uint64_t bits : due) {
    any |= bits;
    all &= bits;
  }
  nb::list batches;
  for (unsigned neighbor = 0; neighbor < neighbors && neighbor < 64; ++neighbor) {
    if (all >> neighbor & 1)
      batches.append(nb::make_tuple(header_offsets, nodes, nb::none(), payload_offsets, payloads));
    else if (any >> neighbor & 1)
      batches.append(rows_of(due, neighbor, header_at, nodes, payload_at, payloads));
  }
  return batches;
}

struct Siena {
  Siena(uint32_t interfaces, uint32_t names, std::vector<std::string> words, bool merge)
      : interfaces(interfaces), names(names), words(uint32_t(words.size())),
        counting(interfaces, names, std::move(words), merge) {
    if (merge && interfaces > 64) throw nb::value_error("merged filters know 64 interfaces");
  }

  // Filter k of interface[k] has the constraints offsets[k] to offsets[k + 1].
  void add(const nb::bytes& interface, const nb::bytes& offsets, const nb::bytes& name,
           const nb::bytes& op, const nb::bytes& value) {
    if (built) throw nb::value_error("the table is built");
    const auto to = column<uint32_t>(interface), starts = column<uint32_t>(offsets);
    const auto named = column<uint32_t>(name);
    const auto ops = column<uint8_t>(op);
    const auto values = column<int32_t>(value);
    check_offsets(starts, named.size());
    if (to.size() + 1 != starts.size() || ops.size() != named.size() ||
        values.size() != named.size())
      throw nb::value_error("the columns differ in length");
    for (size_t k = 0; k < to.size(); ++k) {
      std::vector<Input> filter;
      for (uint32_t c = starts[k]; c < starts[k + 1]; ++c) {
        const bool is_string = ops[c] >= STRING_FIRST;
        if (named[c] >= names || ops[c] > STRING_FIRST + GREATER ||
            (is_string && uint32_t(values[c]) >= words))
          throw nb::value_error("a constraint has an unknown name, operator or word");
        filter.push_back({named[c], ops[c], values[c]});
      }
      if (to[k] >= interfaces || filter.empty())
        throw nb::value_error("a filter has an unknown interface or no constraint");
      counting.add(to[k], std::move(filter));
    }
  }

  void build() {
    if (!built) counting.build();
    built = true;
  }

  // Per message, the matched interfaces, sorted; or only how many there are.
  std::vector<std::vector<uint32_t>> match(const nb::bytes& offsets, const nb::bytes& name,
                                           const nb::bytes& is_string, const nb::bytes& value,
                                           uint32_t rounds) {
    std::vector<std::vector<uint32_t>> all;
    each(offsets, name, is_string, value, rounds, [&all](std::vector<uint32_t> found) {
      std::sort(found.begin(), found.end());
      all.push_back(std::move(found));
    });
    return all;
  }

  std::vector<uint32_t> count(const nb::bytes& offsets, const nb::bytes& name,
                              const nb::bytes& is_string, const nb::bytes& value,
                              uint32_t rounds) {
    std::vector<uint32_t> all;
    each(offsets, name, is_string, value, rounds,
         [&all](const std::vector<uint32_t>& found) { all.push_back(uint32_t(found.size())); });
    return all;
  }

  // Per message, the neighbours that are due it, as bits; neighbor_of[k] is that of interface k.
  nb::bytes route(const nb::bytes& offsets, const nb::bytes& name, const nb::bytes& is_string,
                  const nb::bytes& value, uint32_t rounds, const nb::bytes& neighbor_of) {
    const auto neighbor = column<uint8_t>(neighbor_of);
    if (neighbor.size() != interfaces)
      throw nb::value_error("every interface belongs to one neighbour");
    std::vector<uint64_t> all;
    each(offsets, name, is_string, value, rounds, [&](const std::vector<uint32_t>& found) {
      uint64_t due = 0;
      for (uint32_t interface : found) due |= uint64_t(1) << (neighbor[interface] & 63);
      all.push_back(due);
    });
    return as_bytes(all.data(), all.size() * 8);
  }

  template <class Use>
  void each(const nb::bytes& offsets, const nb::bytes& name, const nb::bytes& is_string,
            const nb::bytes& value, uint32_t rounds, Use&& use) {
    if (!built) throw nb::value_error("the table is not built");
    const auto starts = column<uint32_t>(offsets), named = column<uint32_t>(name);
    const auto strings = column<uint8_t>(is_string);
    const auto values = column<int32_t>(value);
    check_offsets(starts, named.size());
    if (strings.size() != named.size() || values.size() != named.size())
      throw nb::value_error("the columns differ in length");
    std::vector<Attribute> message;
    for (size_t k = 0; k + 1 < starts.size(); ++k) {
      message.clear();
      for (uint32_t a = starts[k]; a < starts[k + 1]; ++a) {
        if (strings[a] && uint32_t(values[a]) >= words)
          throw nb::value_error("an attribute has an unknown word");
        message.push_back({named[a], strings[a] != 0, values[a]});
      }
      use(counting.match(message.data(), message.size(), rounds));
    }
  }

  uint32_t interfaces, names, words;
  bool built = false;
  Counting counting;
};

}  // namespace

NB_MODULE(_opponents, module) {
  nb::set_leak_warnings(false);
  module.def("gather", &gather);
  nb::class_<Lists>(module, "Lists")
      .def(nb::init<>())
      .def("subscribe", &subscribe)
      .def("route", &route)
      .def("size", &Lists::size)
      .def("bytes", &Lists::bytes);
  nb::class_<Siena>(module, "Siena")
      .def(nb::init<uint32_t, uint32_t, std::vector<std::string>, bool>())
      .def("add", &Siena::add)
      .def("build", &Siena::build)
      .def("match", &Siena::match)
      .def("count", &Siena::count)
      .def("route", &Siena::route)
      .def("filters", [](const Siena& self) { return self.counting.filters(); })
      .def("constraints", [](const Siena& self) { return self.counting.constraints(); })
      .def("bytes", [](const Siena& self) { return self.counting.bytes(); });
}
