#include <cmath>

// y = x / sqrt(mean(x^2) + epsilon) * weight, row by row.
extern "C" void rms_norm(const float* x, const float* weight, float* y, float epsilon, int rows, int columns) {
    for (int row = 0; row < rows; ++row) {
        const float* in = x + static_cast<long>(row) * columns;
        float* out = y + static_cast<long>(row) * columns;
        double sum = 0.0;
        for (int column = 0; column < columns; ++column) {
            sum += static_cast<double>(in[column]) * in[column];
        }
        const float scale = static_cast<float>(1.0 / std::sqrt(sum / columns + epsilon));
        for (int column = 0; column < columns; ++column) {
            out[column] = in[column] * scale * weight[column];
        }
    }
}
