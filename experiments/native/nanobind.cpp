// nanobind's own code: a part of the module, so that installing needs nothing but a compiler.
#include <nb_combined.cpp>
