#include "columns.hpp"

namespace f3 {
namespace {

void check_offsets(const std::string& name, Bytes column, u64 count, u64 end) {
  if (column.size() != 4 * (count + 1))
    throw ProtocolError("a batch of " + std::to_string(count) + " has " +
                        std::to_string(column.size()) + " bytes of " + name + " offsets");
  bool rising = u32_at(column, 0) == 0 && u32_at(column, count) == end;
  for (u64 k = 0; k < count; ++k) rising &= u32_at(column, k) <= u32_at(column, k + 1);
  if (!rising)
    throw ProtocolError("the " + name + " offsets of a batch do not cover its " +
                        std::to_string(end) + " entries");
}

void check_traces(Bytes column, u64 count) {
  if (column.size() % TRACE_RECORD)
    throw ProtocolError(std::to_string(column.size()) +
                        " bytes hold no whole number of trace contexts");
  int64_t last = -1;
  for (size_t at = 0; at < column.size(); at += TRACE_RECORD) {
    const int64_t row = u32_at(column.substr(at), 0);
    if (row <= last || row >= int64_t(count))
      throw ProtocolError("trace contexts of a batch of " + std::to_string(count) + ": row " +
                          std::to_string(row) + " is out of place");
    last = row;
  }
}

}  // namespace

void Columns::check() const {
  if (positions.size() % 8 || nodes.size() % 4)
    throw ProtocolError("a batch has a column that is no whole number of entries");
  check_offsets("header", header_offsets, count(), nodes.size() / 4);
  check_offsets("payload", payload_offsets, count(), payloads.size());
  check_traces(traces, count());
}

void Columns::validate() const {
  check();
  // Copies of one notification share its position.
  bool falling = false;
  for (u32 k = 0; k + 1 < count(); ++k) falling |= u64_at(positions, k) > u64_at(positions, k + 1);
  if (falling) throw ProtocolError("the positions of a batch fall");
}

}  // namespace f3
