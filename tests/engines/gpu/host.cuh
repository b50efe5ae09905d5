// Compiles the CUDA kernels for the processor: a block is a group of threads of one process.
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#define ON_HOST
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define SHARED_MEMORY(type, name) type* name = (type*) host_shared_memory

struct Index {
    unsigned x;
};
static Index blockIdx, blockDim, gridDim;
static thread_local Index threadIdx;
static pthread_barrier_t barrier;
alignas(16) static unsigned host_shared_memory[65536];  // blocks run one after the other

static inline void __syncthreads() { pthread_barrier_wait(&barrier); }
template <class T>
static inline T atomicAdd(T* sum, T value) {
    return __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}
static inline float __fdividef(float a, float b) { return a / b; }
#define __log2f(x) std::log2((float) (x))
static inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
static inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
// a + b, rounded down. Sums of two floats of similar size are exact in double precision.
static inline float __fadd_rd(float a, float b) {
    double sum = (double) a + b;
    float nearest = (float) sum;
    return nearest > sum ? std::nextafter(nearest, -INFINITY) : nearest;
}
using std::llrint;
using std::min;
// A warp is a block: its lanes pass values to one another through memory.
static unsigned long long of_lane[64];
template <class T>
static inline T __shfl_sync(unsigned, T value, int lane, int) {
    std::memcpy(of_lane + threadIdx.x, &value, sizeof value);
    __syncthreads();
    std::memcpy(&value, of_lane + lane, sizeof value);
    __syncthreads();
    return value;
}
template <class T>
static inline T __shfl_xor_sync(unsigned lanes, T value, int other, int width) {
    return __shfl_sync(lanes, value, threadIdx.x ^ other, width);
}

extern "C" void begin_block(unsigned block, unsigned n_blocks, unsigned n_threads) {
    blockIdx.x = block;
    gridDim.x = n_blocks;
    blockDim.x = n_threads;
    pthread_barrier_init(&barrier, nullptr, n_threads);
}
extern "C" void begin_thread(unsigned thread) { threadIdx.x = thread; }
