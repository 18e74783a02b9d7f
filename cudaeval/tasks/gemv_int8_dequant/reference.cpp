#include <cstdint>

// y[row] = sum of weight * scale of its group * x; groups of `group` columns, the last one of a row may be short.
extern "C" void gemv_int8_dequant(const int8_t* weight, const float* scale, const float* x, float* y, int rows, int columns, int group) {
    const int groups = (columns + group - 1) / group;
    for (int row = 0; row < rows; ++row) {
        double total = 0.0;
        for (int g = 0; g < groups; ++g) {
            const int end = (g + 1) * group < columns ? (g + 1) * group : columns;
            float sum = 0.0f;
            for (int column = g * group; column < end; ++column) {
                sum += static_cast<float>(weight[static_cast<long>(row) * columns + column]) * x[column];
            }
            total += static_cast<double>(sum) * scale[static_cast<long>(row) * groups + g];
        }
        y[row] = static_cast<float>(total);
    }
}
