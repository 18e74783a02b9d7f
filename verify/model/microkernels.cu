// Measures what a profile of the model needs to know of a GPU: one line `NAME VALUE` for each property and constant, in the
// units of verify/model/profiles.py. Every time is the least of several runs, so that a busy moment does not count.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

static void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

static void tell(const char* name, double value) { std::printf("%s %.9g\n", name, value); }

// Nanoseconds of one call of `work`, which only enqueues; `times` calls are timed together.
template <class Work>
static double nanoseconds(Work work, int times = 1, int runs = 7) {
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "cudaEventCreate");
  must(cudaEventCreate(&end), "cudaEventCreate");
  double best = 1e300;
  for (int run = 0; run < runs; run++) {
    cudaEventRecord(begin);
    for (int i = 0; i < times; i++) work();
    cudaEventRecord(end);
    must(cudaEventSynchronize(end), "a micro-kernel");
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    best = std::min(best, milliseconds * 1e6 / times);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best;
}

template <class T>
static T* allocate(size_t count) {
  T* pointer = nullptr;
  must(cudaMalloc(&pointer, count * sizeof(T)), "cudaMalloc");
  must(cudaMemset(pointer, 0, count * sizeof(T)), "cudaMemset");
  return pointer;
}

__global__ void nothing() {}

__global__ void copy(const float4* from, float4* to, size_t count) {
  size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

// Every block reads all of `from`, past L1.
__global__ void read_again(const float4* from, size_t count, int rounds, float* sink) {
  float sum = 0;
  size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x, first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    for (size_t i = (first + static_cast<size_t>(round) * 4099 * blockDim.x) % count, n = 0; n < count; n += stride, i = i + stride < count ? i + stride : i + stride - count) {
      float4 four = __ldcg(from + i);
      sum += four.x + four.y + four.z + four.w;
    }
  }
  if (sum == 1234.5f) *sink = sum;
}

__global__ void write_again(float4* to, size_t count, int rounds) {
  size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (int round = 0; round < rounds; round++) {
    auto value = static_cast<float>(round);
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = {value, value, value, value};
  }
}

// One thread follows a chain of indices; its clocks a step go to `clocks`.
template <bool kShared>
__global__ void chase(const uint32_t* next, uint32_t shared_count, int steps, double* clocks, uint32_t* sink) {
  extern __shared__ uint32_t own[];
  if (kShared) {
    for (uint32_t i = 0; i < shared_count; i++) own[i] = next[i];
  }
  const uint32_t* place = kShared ? own : next;
  uint32_t at = 0;
  for (int i = 0; i < steps / 4; i++) at = place[at];  // what fits into a cache is there after this
  long long begin = clock64();
  for (int i = 0; i < steps; i++) at = place[at];
  *clocks = static_cast<double>(clock64() - begin) / steps;
  *sink = at;
}

__global__ void barriers(int times, double* clocks) {
  long long begin = clock64();
  for (int i = 0; i < times; i++) __syncthreads();
  if (threadIdx.x == 0) *clocks = static_cast<double>(clock64() - begin) / times;
}

__global__ void meetings(int times, double* clocks, int* sink) {
  int value = static_cast<int>(threadIdx.x);
  long long begin = clock64();
  for (int i = 0; i < times; i++) value = __shfl_xor_sync(0xFFFFFFFFu, value, 1) + i;
  if (threadIdx.x == 0) *clocks = static_cast<double>(clock64() - begin) / times;
  sink[threadIdx.x] = value;
}

template <class T>
__global__ void arithmetic(int times, T factor, T* sink) {
  T a = static_cast<T>(threadIdx.x), b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < times; i++) a = a * factor + 1, b = b * factor + 1, c = c * factor + 1, d = d * factor + 1;
  if (a + b + c + d == static_cast<T>(1234.5)) *sink = a;
}

__global__ void dependent(int times, float factor, double* clocks, float* sink) {
  float value = 1;
  long long begin = clock64();
  for (int i = 0; i < times; i++) value = value * factor + 1;
  *clocks = static_cast<double>(clock64() - begin) / times;
  *sink = value;
}

__global__ void clock_rate(long long wanted, double* clocks_a_nanosecond) {
  uint64_t start, end;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  long long begin = clock64(), now = begin;
  while (now - begin < wanted) now = clock64();
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end));
  if (blockIdx.x == 0 && threadIdx.x == 0) *clocks_a_nanosecond = static_cast<double>(now - begin) / static_cast<double>(end - start);
}

// One lane of each warp updates: always one word, or a word of a line of its own.
__global__ void update(unsigned* words, int times, uint32_t lines) {
  if (threadIdx.x % 32) return;
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (int i = 0; i < times; i++) atomicAdd(words + 32ull * (lines == 1 ? 0 : (warp * 97u + static_cast<uint32_t>(i) * 7919u) % lines), 1u);
}

static double read_double(const double* place) {
  double value = 0;
  must(cudaMemcpy(&value, place, sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return value;
}

// A cycle through all lines of `bytes`, in random order.
static std::vector<uint32_t> chain(size_t bytes) {
  size_t words = bytes / 4, lines = bytes / 128;
  std::vector<uint32_t> order(lines), next(words, 0);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin() + 1, order.end(), std::mt19937(20261121));
  for (size_t i = 0; i < lines; i++) next[order[i] * 32ull] = order[(i + 1) % lines] * 32u;
  return next;
}

static double wait_clocks(size_t bytes, bool shared) {
  std::vector<uint32_t> next = chain(bytes);
  auto* device = allocate<uint32_t>(next.size());
  auto* clocks = allocate<double>(1);
  auto* sink = allocate<uint32_t>(1);
  must(cudaMemcpy(device, next.data(), next.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
  int steps = static_cast<int>(std::min<size_t>(bytes / 128 * 4, 20000));
  double best = 1e300;
  for (int run = 0; run < 5; run++) {
    if (shared) chase<true><<<1, 1, bytes>>>(device, static_cast<uint32_t>(next.size()), steps, clocks, sink);
    else chase<false><<<1, 1>>>(device, 0, steps, clocks, sink);
    best = std::min(best, read_double(clocks));
  }
  cudaFree(device), cudaFree(clocks), cudaFree(sink);
  return best;
}

int main() {
  cudaDeviceProp gpu{};
  must(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  int driver = 0;
  must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  std::printf("title %s\narchitecture sm_%d%d\n", gpu.name, gpu.major, gpu.minor);
  int multiprocessors = gpu.multiProcessorCount, full = gpu.maxThreadsPerMultiProcessor / 256;
  tell("multiprocessors", multiprocessors);
  tell("warps", gpu.maxThreadsPerMultiProcessor / 32);
  tell("blocks", gpu.maxBlocksPerMultiProcessor);
  tell("shared", static_cast<double>(gpu.sharedMemPerMultiprocessor));
  tell("shared_reserved", std::max<double>(1, static_cast<double>(gpu.reservedSharedMemPerBlock)));
  tell("l2", gpu.l2CacheSize);

  auto* number = allocate<double>(1);
  auto* floats = allocate<float>(1024);
  clock_rate<<<multiprocessors * 2, 256>>>(200'000'000, number);
  double clock = read_double(number);
  tell("clock", clock);

  // A warp of 32 lanes does 4 x `times` float64 instructions in each of 8 warps of each block.
  auto* doubles = allocate<double>(1);
  int times = 4096;
  double taken = nanoseconds([&] { arithmetic<double><<<multiprocessors * full, 256>>>(times, 0.5, doubles); });
  tell("double_rate", 4.0 * times * 8 * full / (taken * clock));

  size_t large = std::max<size_t>(static_cast<size_t>(gpu.l2CacheSize) * 8, 256u << 20), count = large / sizeof(float4);
  auto *from = allocate<float4>(count), *to = allocate<float4>(count);
  tell("dram", 2.0 * static_cast<double>(large) / nanoseconds([&] { copy<<<multiprocessors * full, 256>>>(from, to, count); }));
  size_t inside = static_cast<size_t>(gpu.l2CacheSize) / 4 / sizeof(float4);
  int rounds = 32;
  double bytes = static_cast<double>(inside * sizeof(float4)) * rounds;
  tell("l2_read", bytes / nanoseconds([&] { read_again<<<multiprocessors * full, 256>>>(from, inside, rounds, floats); }));
  tell("l2_write", bytes / nanoseconds([&] { write_again<<<multiprocessors * full, 256>>>(to, inside, rounds); }));
  cudaFree(from), cudaFree(to);

  tell("near_wait", wait_clocks(8192, false));
  tell("middle_wait", wait_clocks(static_cast<size_t>(gpu.l2CacheSize) / 4, false));
  tell("far_wait", wait_clocks(large, false));
  tell("shared_wait", wait_clocks(8192, true));
  dependent<<<1, 32>>>(65536, 0.5f, number, floats);
  tell("step", read_double(number));
  barriers<<<1, 256>>>(65536, number);
  tell("barrier", read_double(number));
  auto* integers = allocate<int>(32);
  meetings<<<1, 32>>>(65536, number, integers);
  tell("meeting", read_double(number));

  auto* words = allocate<unsigned>(32u << 16);
  double warps = 8.0 * multiprocessors * full;
  tell("hot_update", nanoseconds([&] { update<<<multiprocessors * full, 256>>>(words, 64, 1); }) / (warps * 64));
  tell("spread_update", nanoseconds([&] { update<<<multiprocessors * full, 256>>>(words, 256, 1u << 16); }) / (warps * 256));
  double one = nanoseconds([] { nothing<<<1, 32>>>(); }, 200);
  tell("launch", one * 1e-3);
  tell("block", (nanoseconds([] { nothing<<<1 << 20, 128>>>(); }) - one) / (1 << 20));
  tell("memset", nanoseconds([&] { cudaMemsetAsync(words, 0, 128); }, 200) * 1e-3);
  std::printf("driver %d\n", driver);
  return 0;
}
