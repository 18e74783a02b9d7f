// Cooperative groups up to a thread block: blocks, tiles of a warp, coalesced threads. Grids and clusters are not offered.
#pragma once

namespace cooperative_groups {

class thread_block {
 public:
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return regraph::linear_thread(); }
  static unsigned size() { return regraph::block_threads(); }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }
inline void sync(const thread_block& group) { group.sync(); }

// Operations of a group whose members are some lanes of one warp; ranks count the members in lane order.
class warp_group {
 public:
  explicit warp_group(unsigned mask) : mask_(mask) {}
  void sync() const { __syncwarp(mask_); }
  unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return static_cast<unsigned>(__popc(mask_ & ((1u << regraph::lane()) - 1))); }
  template <class T>
  T shfl(T value, int rank) const { return regraph::shuffle(mask_, value, lane_of(rank)); }
  template <class T>
  T shfl_up(T value, unsigned delta) const { return from(value, static_cast<int>(thread_rank()) - static_cast<int>(delta)); }
  template <class T>
  T shfl_down(T value, unsigned delta) const { return from(value, static_cast<int>(thread_rank() + delta)); }
  template <class T>
  T shfl_xor(T value, unsigned ranks) const { return from(value, static_cast<int>(thread_rank() ^ ranks)); }
  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  unsigned ballot(int predicate) const { return packed(__ballot_sync(mask_, predicate)); }
  template <class T>
  unsigned match_any(T value) const { return packed(__match_any_sync(mask_, value)); }
  unsigned mask() const { return mask_; }

 private:
  template <class T>
  T from(T value, int rank) const {
    bool inside = rank >= 0 && rank < static_cast<int>(size());
    return regraph::shuffle(mask_, value, inside ? lane_of(rank) : static_cast<int>(regraph::lane()));
  }
  int lane_of(int rank) const {
    unsigned left = mask_;
    while (rank-- > 0) left &= left - 1;
    return __ffs(static_cast<int>(left)) - 1;
  }
  unsigned packed(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned left = mask_; left; left &= left - 1, rank++) result |= (lanes & left & (0u - left) ? 1u : 0u) << rank;
    return result;
  }
  unsigned mask_;
};

template <unsigned Size, class Parent = void>
class thread_block_tile : public warp_group {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "tiles of 1 to 32 threads");

 public:
  thread_block_tile() : warp_group(lanes()) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : warp_group(lanes()) {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned thread_rank() const { return regraph::lane() & (Size - 1); }
  unsigned meta_group_rank() const { return regraph::linear_thread() / Size; }
  unsigned meta_group_size() const { return (regraph::block_threads() + Size - 1) / Size; }

 private:
  static unsigned lanes() {
    constexpr unsigned ones = Size == 32 ? ~0u : (1u << (Size % 32)) - 1;
    return ones << (regraph::lane() & ~(Size - 1));
  }
};
template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }

class coalesced_group : public warp_group {
 public:
  explicit coalesced_group(unsigned mask) : warp_group(mask) {}
};
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

// The members' values combined in rank order, which every member computes alike.
template <class Group, class T, class Operation>
T reduce(const Group& group, T value, Operation operation) {
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); rank++) result = operation(result, group.shfl(value, static_cast<int>(rank)));
  return result;
}
template <class Group, class T, class Operation = plus<T>>
T inclusive_scan(const Group& group, T value, Operation operation = {}) {
  for (unsigned delta = 1; delta < group.size(); delta *= 2) {
    T other = group.shfl_up(value, delta);
    if (group.thread_rank() >= delta) value = operation(other, value);
  }
  return value;
}
template <class Group, class T>
T exclusive_scan(const Group& group, T value) {
  T other = group.shfl_up(inclusive_scan(group, value), 1);
  return group.thread_rank() ? other : T{};
}

}  // namespace cooperative_groups
