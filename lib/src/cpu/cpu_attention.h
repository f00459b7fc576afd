/* Attention in host memory, in tiles, with fp32 accumulation: the CPU backend's forward and
 * backward. Pointers are host addresses with the shapes and strides of a resolved problem. */
#ifndef FATTN_CPU_ATTENTION_H
#define FATTN_CPU_ATTENTION_H

#include <fattn/fattn.h>

/* Bytes of scratch that one thread needs. */
size_t fattn__cpu_scratch_bytes(const fattn_problem *p);

/* `scratch` holds threads * fattn__cpu_scratch_bytes(p) bytes, 64-byte aligned; nothing else is
 * allocated. */
void fattn__cpu_forward(const fattn_problem *p, const fattn_tensors *t, int threads, char *scratch);
void fattn__cpu_backward(const fattn_problem *p, const fattn_tensors *t, int threads,
                         char *scratch);

#endif
