// Neighbours of the vertices at level `current` that have level -1 get current + 1; found is their number.
extern "C" void bfs_level(const int* row_start, const int* neighbour, int* level, int* found, int current, int vertices, int edges) {
    (void)edges;
    int count = 0;
    for (int vertex = 0; vertex < vertices; ++vertex) {
        if (level[vertex] != current) {
            continue;
        }
        for (int edge = row_start[vertex]; edge < row_start[vertex + 1]; ++edge) {
            if (level[neighbour[edge]] == -1) {
                level[neighbour[edge]] = current + 1;
                ++count;
            }
        }
    }
    found[0] = count;
}
