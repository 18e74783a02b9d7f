#include <cstddef>

extern "C" void scale_bias_relu(const float* x, const float* scale, const float* bias, float* y, int rows,
                                int cols) {
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            const size_t i = static_cast<size_t>(r) * cols + c;
            const float v = x[i] * scale[c] + bias[c];
            y[i] = v > 0.0f ? v : 0.0f;
        }
    }
}
