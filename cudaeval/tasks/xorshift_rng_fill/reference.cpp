#include <cstdint>

static uint32_t mix(uint32_t h) {  // the finaliser of MurmurHash3
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

// value[draw * streams + stream] is draw number `draw` of that stream, in [0, 1).
extern "C" void xorshift_rng_fill(const uint32_t* seed, float* value, int streams, int draws) {
    for (int stream = 0; stream < streams; ++stream) {
        uint32_t x = mix(seed[stream] + 1u);
        uint32_t y = mix(seed[stream] + 2u);
        uint32_t z = mix(seed[stream] + 3u);
        uint32_t w = mix(seed[stream] + 4u) | 1u;
        for (int draw = 0; draw < draws; ++draw) {
            const uint32_t t = x ^ (x << 11);
            x = y;
            y = z;
            z = w;
            w = w ^ (w >> 19) ^ t ^ (t >> 8);
            value[static_cast<long>(draw) * streams + stream] = static_cast<float>(w >> 8) * (1.0f / 16777216.0f);
        }
    }
}
