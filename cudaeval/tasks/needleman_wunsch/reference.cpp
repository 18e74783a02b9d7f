#include <algorithm>
#include <cstdint>

// score(i, j) = max(score(i-1, j-1) + same or different, score(i-1, j) + gap, score(i, j-1) + gap); the borders are
// multiples of gap. Returns score(n, 0 .. m).
extern "C" void needleman_wunsch(const uint8_t* first, const uint8_t* second, int* last_row, int same, int different, int gap, int n,
                                 int m) {
    for (int j = 0; j <= m; ++j) {
        last_row[j] = j * gap;
    }
    for (int i = 1; i <= n; ++i) {
        int corner = last_row[0];
        int left = i * gap;
        last_row[0] = left;
        for (int j = 1; j <= m; ++j) {
            const int diagonal = corner + (first[i - 1] == second[j - 1] ? same : different);
            corner = last_row[j];
            left = std::max(diagonal, std::max(corner, left) + gap);
            last_row[j] = left;
        }
    }
}
