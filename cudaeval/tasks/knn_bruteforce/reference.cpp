// The k nearest in order of squared distance, then of index; d <= 8, k <= 16, k <= n. Coordinates are small integers, so that
// squared distances are exact in float.
extern "C" void knn_bruteforce(const float* query, const float* point, int* index, float* square, int queries, int n, int d, int k) {
    for (int q = 0; q < queries; ++q) {
        float* best = square + static_cast<long>(q) * k;
        int* place = index + static_cast<long>(q) * k;
        int filled = 0;
        for (int p = 0; p < n; ++p) {
            float sum = 0.0f;
            for (int c = 0; c < d; ++c) {
                const float difference = query[q * d + c] - point[static_cast<long>(p) * d + c];
                sum += difference * difference;
            }
            if (filled == k && !(sum < best[k - 1])) {
                continue;
            }
            int slot = filled < k ? filled++ : k - 1;
            while (slot > 0 && sum < best[slot - 1]) {
                best[slot] = best[slot - 1];
                place[slot] = place[slot - 1];
                --slot;
            }
            best[slot] = sum;
            place[slot] = p;
        }
    }
}
