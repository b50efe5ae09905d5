// Compiles the CUDA kernels for the processor: a block is a group of threads of one process.
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#define ON_HOST
#define __global__
#define __device__
#define __shared__ static  // blocks run one after the other
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(n)
#define SHARED_MEMORY(type, name) type* name = (type*)host_shared_memory

struct Index {
    unsigned x;
};
static Index blockIdx, blockDim, gridDim;
static thread_local Index threadIdx;
static pthread_barrier_t barrier;
alignas(16) static unsigned host_shared_memory[65536];

static inline void __syncthreads() { pthread_barrier_wait(&barrier); }
template <class T>
static inline T atomicAdd(T* sum, T value) {
    return __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}
static inline float __fdividef(float a, float b) { return a / b; }
#define __log2f(x) std::log2((float)(x))
static inline float __int_as_float(int bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int __float_as_int(float x) {
    int bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline long long __double_as_longlong(double x) {
    long long bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double __longlong_as_double(long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
using std::llrint;
using std::min;
// a + b, rounded down. Sums of two floats of similar size are exact in double precision.
static inline float __fadd_rd(float a, float b) {
    double sum = (double)a + b;
    float nearest = (float)sum;
    return nearest > sum ? std::nextafter(nearest, -INFINITY) : nearest;
}

// A warp is a block: its lanes pass values to one another through memory.
static unsigned long long of_lane[64];
template <class T>
static inline T __shfl_sync(unsigned, T value, int lane) {
    std::memcpy(of_lane + threadIdx.x, &value, sizeof value);
    __syncthreads();
    std::memcpy(&value, of_lane + lane, sizeof value);
    __syncthreads();
    return value;
}
template <class T>
static inline T __shfl_xor_sync(unsigned lanes, T value, int other) {
    return __shfl_sync(lanes, value, threadIdx.x ^ other);
}

extern "C" void begin_block(unsigned block, unsigned n_blocks, unsigned n_threads) {
    blockIdx.x = block;
    gridDim.x = n_blocks;
    blockDim.x = n_threads;
    pthread_barrier_init(&barrier, nullptr, n_threads);
}
extern "C" void begin_thread(unsigned thread) { threadIdx.x = thread; }
