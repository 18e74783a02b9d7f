extern "C" void reduction(const float* x, float* total, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
    }
    total[0] = static_cast<float>(sum);
}
