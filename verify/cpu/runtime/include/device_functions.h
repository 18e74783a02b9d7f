// What a candidate finds under this name: nothing more, regraph_cuda.h stands before its text.
#pragma once
