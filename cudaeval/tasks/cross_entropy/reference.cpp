#include <cmath>
#include <cstddef>

extern "C" void cross_entropy(const float* logits, const int* labels, float* loss, int rows, int classes) {
    double total = 0.0;
    for (int r = 0; r < rows; r++) {
        const float* row = logits + static_cast<size_t>(r) * classes;
        float peak = row[0];
        for (int c = 1; c < classes; c++) {
            peak = row[c] > peak ? row[c] : peak;
        }
        double sum = 0.0;
        for (int c = 0; c < classes; c++) {
            sum += std::exp(row[c] - peak);
        }
        total += std::log(sum) + peak - row[labels[r]];
    }
    loss[0] = static_cast<float>(total / rows);
}
