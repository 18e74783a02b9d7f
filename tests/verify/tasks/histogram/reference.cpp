extern "C" void histogram(const int* keys, int* counts, int n) {
    for (int k = 0; k < 64; ++k) counts[k] = 0;
    for (int i = 0; i < n; ++i) ++counts[keys[i]];
}
