#include <cstddef>

extern "C" void transpose(const float* a, float* b, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            b[static_cast<size_t>(c) * rows + r] = a[static_cast<size_t>(r) * cols + c];
        }
    }
}
