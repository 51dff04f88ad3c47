// The columns of a batch of notifications: routing/batch.py says what they are.
#pragma once

#include <string_view>

#include "graph.hpp"

namespace f3 {

using Bytes = std::string_view;

inline u32 u32_at(Bytes column, size_t k) {
  u32 value;
  std::memcpy(&value, column.data() + 4 * k, 4);
  return value;
}

inline u64 u64_at(Bytes column, size_t k) {
  u64 value;
  std::memcpy(&value, column.data() + 8 * k, 8);
  return value;
}

// A row and a trace context: routing/trace.py.
constexpr size_t TRACE_RECORD = 29;

struct Columns {
  Bytes header_offsets, nodes, positions, payload_offsets, payloads, traces;

  u32 count() const { return u32(positions.size() / 8); }

  // ProtocolError unless they fit together. `validate` is for what came from outside; `check` is
  // what must hold before anything is read by offset.
  void check() const;
  void validate() const;
};

}  // namespace f3
