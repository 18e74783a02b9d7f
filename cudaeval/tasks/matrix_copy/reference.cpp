#include <cstddef>

extern "C" void matrix_copy(const float* a, float* b, int rows, int cols, int pitch) {
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            b[static_cast<size_t>(r) * cols + c] = a[static_cast<size_t>(r) * pitch + c];
        }
    }
}
