# llama-cpp-python needs llama.cpp's library only: not its common code, tools, tests or server. Building without them takes
# a third of the time. CMake reads this file after `project()`: CMAKE_PROJECT_INCLUDE names it.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
