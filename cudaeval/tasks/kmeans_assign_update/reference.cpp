#include <cstddef>
#include <vector>

// label: the nearest centroid (the first on ties). mean: the mean of each centroid's points, or the centroid itself if it
// has none. d <= 32, k <= 128.
extern "C" void kmeans_assign_update(const float* point, const float* centroid, int* label, float* mean, int n, int d, int k) {
    std::vector<double> sum(static_cast<std::size_t>(k) * d, 0.0);
    std::vector<int> count(k, 0);
    for (int i = 0; i < n; ++i) {
        int best = 0;
        float smallest = 0.0f;
        for (int c = 0; c < k; ++c) {
            float distance = 0.0f;
            for (int j = 0; j < d; ++j) {
                const float difference = point[static_cast<long>(i) * d + j] - centroid[c * d + j];
                distance += difference * difference;
            }
            if (c == 0 || distance < smallest) {
                smallest = distance;
                best = c;
            }
        }
        label[i] = best;
        ++count[best];
        for (int j = 0; j < d; ++j) {
            sum[best * d + j] += point[static_cast<long>(i) * d + j];
        }
    }
    for (int c = 0; c < k; ++c) {
        for (int j = 0; j < d; ++j) {
            mean[c * d + j] = count[c] > 0 ? static_cast<float>(sum[c * d + j] / count[c]) : centroid[c * d + j];
        }
    }
}
