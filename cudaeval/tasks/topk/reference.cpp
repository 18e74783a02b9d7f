#include <vector>

// Descending; equal values in order of their index. 1 <= k <= min(32, columns).
extern "C" void topk(const float* x, float* values, int* indices, int rows, int columns, int k) {
    for (int row = 0; row < rows; ++row) {
        const float* line = x + static_cast<long>(row) * columns;
        float* best = values + static_cast<long>(row) * k;
        int* place = indices + static_cast<long>(row) * k;
        int filled = 0;
        for (int column = 0; column < columns; ++column) {
            const float value = line[column];
            if (filled == k && !(value > best[k - 1])) {
                continue;
            }
            int slot = filled < k ? filled++ : k - 1;
            while (slot > 0 && value > best[slot - 1]) {
                best[slot] = best[slot - 1];
                place[slot] = place[slot - 1];
                --slot;
            }
            best[slot] = value;
            place[slot] = column;
        }
    }
}
