// What a candidate's #include <math_functions.h> finds on the CPU level.
#pragma once
#include <regraph_cuda.h>
