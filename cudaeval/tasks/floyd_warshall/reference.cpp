// In place, row-major; distance[i * n + i] = 0, missing edges are 10^9.
extern "C" void floyd_warshall(int* distance, int n) {
    for (int k = 0; k < n; ++k) {
        const int* through = distance + static_cast<long>(k) * n;
        for (int i = 0; i < n; ++i) {
            int* line = distance + static_cast<long>(i) * n;
            const int to = line[k];
            for (int j = 0; j < n; ++j) {
                const int candidate = to + through[j];
                line[j] = candidate < line[j] ? candidate : line[j];
            }
        }
    }
}
