// what: a bitonic sort of its own, without a library
// task: sort_keys
// verdict: passed
// levels: functional gpu
#include <climits>

__global__ void bitonic(int* keys, int n, int room) {
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < room; i += blockDim.x) s[i] = i < n ? keys[i] : INT_MAX;
    __syncthreads();
    for (int size = 2; size <= room; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            for (int i = threadIdx.x; i < room; i += blockDim.x) {
                int other = i ^ step;
                bool up = (i & size) == 0;
                if (other > i && (s[i] > s[other]) == up) {
                    int t = s[i];
                    s[i] = s[other];
                    s[other] = t;
                }
            }
            __syncthreads();
        }
    for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = s[i];
}

extern "C" void sort_keys(int* keys, int n) {
    int room = 2;
    while (room < n) room *= 2;
    bitonic<<<1, 256, room * sizeof(int)>>>(keys, n, room);
}
