#include <cstddef>

extern "C" void gather_rows(const float* table, const int* indices, float* out, int vocabulary, int rows,
                            int width) {
    for (int r = 0; r < rows; r++) {
        const float* source = table + static_cast<size_t>(indices[r]) * width;
        for (int c = 0; c < width; c++) {
            out[static_cast<size_t>(r) * width + c] = source[c];
        }
    }
}
