#include <cuda_runtime.h>

__global__ void softmax_rows_kernel(const float* x, float* y, int rows, int width) {
    __shared__ float sdata[256];
    int r = blockIdx.x;
    int tid = threadIdx.x;
    const float* row = x + static_cast<size_t>(r) * width;
    float* out = y + static_cast<size_t>(r) * width;
    float peak = -INFINITY;
    for (int c = tid; c < width; c += blockDim.x) {
        peak = row[c] > peak ? row[c] : peak;
    }
    sdata[tid] = peak;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            sdata[tid] = fmaxf(sdata[tid], sdata[tid + s]);
        }
        __syncthreads();
    }
    peak = sdata[0];
    __syncthreads();
    float sum = 0.0f;
    for (int c = tid; c < width; c += blockDim.x) {
        out[c] = expf(row[c] - peak);
        sum += out[c];
    }
    sdata[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            sdata[tid] += sdata[tid + s];
        }
        __syncthreads();
    }
    sum = sdata[0];
    __syncthreads();
    for (int c = tid; c < width; c += blockDim.x) {
        out[c] = static_cast<float>(out[c] / sum);
    }
}

extern "C" void softmax_rows(const float* x, float* y, int rows, int width) {
    softmax_rows_kernel<<<rows, 256>>>(x, y, rows, width);
}
