#include <cuda_runtime.h>

__global__ void softmax_rows_kernel(const float* x, float* y, int rows, int width) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        const float* row = x + static_cast<size_t>(r) * width;
        float* out = y + static_cast<size_t>(r) * width;
        float peak = row[0];
        for (int c = 1; c < width; c++) {
            peak = row[c] > peak ? row[c] : peak;
        }
        float sum = 0.0f;
        for (int c = 0; c < width; c++) {
            out[c] = expf(row[c] - peak);
            sum += out[c];
        }
        for (int c = 0; c < width; c++) {
            out[c] = static_cast<float>(out[c] / sum);
        }
    }
}

extern "C" void softmax_rows(const float* x, float* y, int rows, int width) {
    softmax_rows_kernel<<<(rows + 255) / 256, 256>>>(x, y, rows, width);
}
