// Short lists of 32-bit words in one block of memory.
//
// A table has hundreds of thousands of lists, most of them a few words long: parents, children,
// labels. A heap allocation each would cost more than what they hold. The capacity of a list
// follows from its size, so it is not stored; blocks that lists have outgrown are kept by
// capacity and used again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace f3 {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct List {
  u32 at = 0;
  u32 size = 0;
};

class Pool {
 public:
  Pool() { std::memset(free_, 0xff, sizeof free_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { std::free(words_); }

  // Valid until the next call that allocates.
  u32* data(List list) { return words_ + list.at; }
  const u32* data(List list) const { return words_ + list.at; }

  // A block for `size` words, at least one; contents undefined.
  u32 allocate(u32 size) {
    const u32 capacity = rounded(size);
    u32& head = free_[kind(capacity)];
    if (head != NONE) {
      const u32 at = head;
      head = words_[at];
      free_words_ -= capacity;
      return at;
    }
    reserve(capacity);
    const u32 at = used_;
    used_ += capacity;
    return at;
  }

  void release(u32 at, u32 size) {
    const u32 capacity = rounded(size);
    u32& head = free_[kind(capacity)];
    words_[at] = head;
    head = at;
    free_words_ += capacity;
  }

  // Change a list's size; the words that both sizes have stay.
  void resize(List& list, u32 size) {
    const u32 before = list.size ? rounded(list.size) : 0;
    const u32 after = size ? rounded(size) : 0;
    if (before != after) {
      const u32 at = after ? allocate(size) : 0;
      if (before) {
        std::memcpy(words_ + at, words_ + list.at, 4 * size_t(before < after ? list.size : size));
        release(list.at, list.size);
      }
      list.at = at;
    }
    list.size = size;
  }

  // Give a list another content, which is not in the pool.
  void assign(List& list, const u32* words, u32 size) {
    const u32 before = list.size ? rounded(list.size) : 0;
    if (before != (size ? rounded(size) : 0)) {
      if (before) release(list.at, list.size);
      list.at = size ? allocate(size) : 0;
    }
    list.size = size;
    if (size) std::memcpy(words_ + list.at, words, 4 * size_t(size));
  }

  void push(List& list, u32 value) {
    resize(list, list.size + 1);
    words_[list.at + list.size - 1] = value;
  }

  // Take one occurrence out; the order of the others may change.
  bool erase(List& list, u32 value) {
    u32* words = data(list);
    for (u32 k = 0; k < list.size; ++k) {
      if (words[k] == value) {
        words[k] = words[list.size - 1];
        resize(list, list.size - 1);
        return true;
      }
    }
    return false;
  }

  static u32 rounded(u32 size) {
    if (size <= 8) return size;
    const u32 step = 1u << (29 - __builtin_clz(size - 1));  // four capacities an octave
    return (size + step - 1) & ~(step - 1);
  }

  void swap(Pool& other) {
    std::swap(words_, other.words_);
    std::swap(used_, other.used_);
    std::swap(capacity_, other.capacity_);
    std::swap(free_words_, other.free_words_);
    std::swap(free_, other.free_);
  }

  u64 bytes() const { return 4 * u64(capacity_); }
  u64 live_words() const { return u64(used_) - free_words_; }
  // Whether a copy of the lists alone would be much smaller.
  bool sparse() const { return free_words_ > 256 + live_words() / 2; }

 private:
  static constexpr u32 NONE = ~u32(0);
  static constexpr u32 WORDS_MAX = 1u << 31;  // labels keep one bit of an offset for themselves

  static u32 kind(u32 capacity) {
    if (capacity <= 8) return capacity - 1;
    const u32 octave = 31 - __builtin_clz(capacity - 1);
    return 8 + 4 * (octave - 3) + ((capacity - 1) >> (octave - 2)) - 4;
  }

  void reserve(u32 more) {
    const u64 need = u64(used_) + more;
    if (need <= capacity_) return;
    if (need > WORDS_MAX) throw std::bad_alloc();
    u64 capacity = need + need / 8 + 256;
    if (capacity > WORDS_MAX) capacity = WORDS_MAX;
    void* words = std::realloc(words_, 4 * capacity);
    if (words == nullptr) throw std::bad_alloc();
    words_ = static_cast<u32*>(words);
    capacity_ = u32(capacity);
  }

  u32* words_ = nullptr;
  u32 used_ = 0;
  u32 capacity_ = 0;
  u64 free_words_ = 0;
  u32 free_[8 + 4 * 29];
};

}  // namespace f3
