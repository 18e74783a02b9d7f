extern "C" void complex_multiply(const float* a, const float* b, float* c, int n) {
    for (int i = 0; i < n; i++) {
        const float ar = a[2 * i], ai = a[2 * i + 1];
        const float br = b[2 * i], bi = b[2 * i + 1];
        c[2 * i] = ar * br - ai * bi;
        c[2 * i + 1] = ar * bi + ai * br;
    }
}
