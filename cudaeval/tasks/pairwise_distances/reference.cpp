#include <cmath>

// distance[i * n + j] = |a_i - b_j| for points of d coordinates.
extern "C" void pairwise_distances(const float* a, const float* b, float* distance, int m, int n, int d) {
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int k = 0; k < d; ++k) {
                const float difference = a[static_cast<long>(i) * d + k] - b[static_cast<long>(j) * d + k];
                sum += difference * difference;
            }
            distance[static_cast<long>(i) * n + j] = std::sqrt(sum);
        }
    }
}
