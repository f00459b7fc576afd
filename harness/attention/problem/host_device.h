/* Marks functions that C and CUDA C++ both compile, so that the CPU and a GPU compute the same. */
#ifndef FACTS_BOTH_H
#define FACTS_BOTH_H

#ifdef __CUDACC__
#define FACTS_BOTH static __host__ __device__ inline
#else
#define FACTS_BOTH static inline
#endif

#endif
