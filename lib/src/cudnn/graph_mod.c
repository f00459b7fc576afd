#include "graph.h"
fattn__desc fattn__chain_mod(const fattn__chain *c, fattn__desc x) { (void)c; return x; }
fattn__desc fattn__chain_mod_gradient(const fattn__chain *c, fattn__desc x, fattn__desc d_s) { (void)c, (void)x; return d_s; }
