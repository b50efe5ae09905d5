// Compiles the CUDA kernels for the processor: a block is a group of threads of one process.
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#define ON_HOST
#define __global__
#define __device__
#define __forceinline__ inline

struct Index {
    unsigned x;
};
static Index blockIdx, blockDim, gridDim;
static thread_local Index threadIdx;
static pthread_barrier_t barrier;

static inline void __syncthreads() { pthread_barrier_wait(&barrier); }
template <class T>
static inline T atomicAdd(T* sum, T value) {
    return __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}
using std::llrint;
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
