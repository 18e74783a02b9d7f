extern "C" void prefix_sum(const int* x, int* sums, int n) {
    int running = 0;
    for (int i = 0; i < n; i++) {
        running += x[i];
        sums[i] = running;
    }
}
