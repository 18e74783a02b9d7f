extern "C" void max_reduce(const float* x, float* result, int n) {
    float best = x[0];
    for (int i = 1; i < n; i++) {
        best = x[i] > best ? x[i] : best;
    }
    result[0] = best;
}
