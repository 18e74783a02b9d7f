extern "C" void axpby_clamp(float alpha, const float* x, float beta, const float* y, float low, float high,
                            float* z, int n) {
    for (int i = 0; i < n; i++) {
        const float v = alpha * x[i] + beta * y[i];
        z[i] = v < low ? low : (v > high ? high : v);
    }
}
