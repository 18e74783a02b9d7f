#include <algorithm>

extern "C" void sort_keys(int* keys, int n) { std::sort(keys, keys + n); }
