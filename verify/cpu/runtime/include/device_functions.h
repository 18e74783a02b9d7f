// What a candidate's #include <device_functions.h> finds on the CPU level.
#pragma once
#include <regraph_cuda.h>
