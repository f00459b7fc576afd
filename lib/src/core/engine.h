/* The interface of a backend. cuDNN, the math kernels and the CPU backend implement the same five
 * members. fattn_decide, fattn_plan_create, fattn_forward and fattn_backward do the common work and
 * call the engines that the policy names, in its order. */
#ifndef FATTN_ENGINE_H
#define FATTN_ENGINE_H

#include "arguments.h"
#include "context.h"
#include "decision.h"
#include "error.h"
#include "fattn/fattn.h"
#include "problem/feature_set.h"

struct fattn_plan {
    _Atomic int references; /* 1 for its creator, and 1 for each other holder */
    const struct fattn__engine *engine;
    fattn_context *context; /* a reference */
    fattn_problem problem;  /* resolved; with a reference to its score_mod */
    size_t workspace_bytes; /* set by setup; constant from then on */
    fattn_engine config;    /* set by setup: the configuration that was compiled */
    double ms;
    void *state;       /* the engine's own */
    uint64_t id;       /* unique in the life of the process */
    size_t host_bytes; /* host memory of the plan, as far as it is known; setup adds its part */
    fattn__arguments arguments; /* the addresses that a call must have */
};

/* `problem` is always resolved. Pointers, alignment and the size of the workspace have been checked
 * before `run`. */
typedef struct fattn__engine {
    const char *name;
    fattn_backend backend;
    uint64_t features; /* FATTN__HAS bits: the engine is never asked for another feature */
    /* Answers yes (fattn__accept) or no (fattn__refuse) in `out`; `ask` are FATTN_ASK_ bits.
     * Returns FATTN_OK when answered. */
    fattn_status (*can_do)(fattn_context *context, const fattn_problem *problem, uint32_t ask,
                           fattn_decision *out);
    /* Compiles: fills workspace_bytes, config and state of a plan that has context and problem. On
     * failure state is NULL. */
    fattn_status (*setup)(fattn_plan *plan, const fattn_plan_options *options);
    /* Enqueues the plan's pass. Called from many threads at once. */
    fattn_status (*run)(const fattn_plan *plan, const fattn_tensors *tensors,
                        struct CUstream_st *stream);
    /* Frees state. */
    void (*done)(fattn_plan *plan);
} fattn__engine;

extern const fattn__engine fattn__cudnn_engine; /* src/cudnn/ */
extern const fattn__engine fattn__math_engine;  /* src/math/ */
extern const fattn__engine fattn__cpu_engine;   /* src/cpu/ */

/* The checks of every call before anything is launched. *out is the whole struct, whatever size the
 * caller's has. Returns FATTN_OK; FATTN_BAD_PROBLEM, FATTN_UNSUPPORTED (a described device). */
fattn_status fattn__check_call(const fattn_plan *plan, fattn_pass pass,
                               const fattn_tensors *tensors, fattn_tensors *out);

/* As fattn__check_call, without the checks of the addresses. */
fattn_status fattn__check_tensors(const fattn_plan *plan, fattn_pass pass,
                                  const fattn_tensors *tensors, fattn_tensors *out);

/* The engine of a backend on the context's device; NULL when that device has none. */
const fattn__engine *fattn__engine_for(const fattn_context *context, fattn_backend backend);
/* The engine of the context's device. */
const fattn__engine *fattn__engine_of(const fattn_context *context);

#endif
