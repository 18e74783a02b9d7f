extern "C" void reverse(const float* x, float* y, int n) {
    for (int i = 0; i < n; i++) {
        y[n - 1 - i] = x[i];
    }
}
