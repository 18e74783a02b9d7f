// Which variable of the candidate lies at an offset: of its image (__device__ and __constant__), or of shared memory.
#pragma once
#include "runtime.h"

namespace regraph {
const Symbol* shared_variable_at(uint64_t offset);
// The last one that begins at or before it.
const Symbol* variable_before(uint64_t offset);
const Symbol* shared_variable_before(uint64_t offset);
}
