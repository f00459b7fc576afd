/* A cuDNN graph from a log or a plan: operations, and the tensors between them. Both formats
 * (cudnn-frontend's nodes, cuDNN's operationGraph) become this structure, and one function looks
 * for attention in it. */
#ifndef FACTS_IMPORT_GRAPH_H
#define FACTS_IMPORT_GRAPH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "language/case.h"

enum { FACTS_IMPORT_MOST = 1024 }; /* tensors, and operations; more is no attention graph */

/* The words of both formats without CUDNN_DATA_. X(SYMBOL, "word") */
/* clang-format off */
#define FACTS_IMPORT_TYPE_LIST(X)                                                              \
    X(BF16, "BFLOAT16") X(F16, "HALF") X(F32, "FLOAT") X(E4M3, "FP8_E4M3") X(E5M2, "FP8_E5M2") \
    X(E8M0, "FP8_E8M0") X(I32, "INT32") X(I64, "INT64") X(BOOL, "BOOLEAN") X(I8, "INT8")       \
    X(U8, "UINT8")
/* clang-format on */
#define AS_ENUM(symbol, word) FACTS_IMPORT_##symbol,
typedef enum facts_import_type {
    FACTS_IMPORT_TYPE_LIST(AS_ENUM) FACTS_IMPORT_TYPE_OTHER
} facts_import_type;
#undef AS_ENUM

typedef struct facts_import_tensor {
    const char *name; /* lives as long as the graph */
    const json_t *json;
    int64_t uid; /* cudnn-frontend's */
    facts_import_type type;
    int rank;                  /* 0: sizes and strides are unknown */
    int64_t dim[4], stride[4]; /* of a rank below 4 the rest is 1 */
    bool strided;              /* strides are known too */
    bool is_virtual, by_value, reordered;
    int ragged; /* the tensor of its offsets; -1: not ragged; -2: ragged, but the offsets are
                   unknown */
    int64_t multiplier; /* of the offsets; 0: unknown */
    int writer;         /* the operation that writes it; -1: it comes from outside */
    bool has_value;     /* a scalar whose number is known */
    double value;
} facts_import_tensor;

/* X(SYMBOL, "tail of cuDNN's CUDNN_BACKEND_OPERATION_…_DESCRIPTOR") */
/* clang-format off */
#define FACTS_IMPORT_OPERATION_LIST(X)                                                            \
    X(MATMUL, "MATMUL") X(POINTWISE, "POINTWISE") X(REDUCTION, "REDUCTION") X(SOFTMAX, "SOFTMAX") \
    X(BAND, "DIAGONAL_BAND_MASK") X(RNG, "RNG") X(RESHAPE, "RESHAPE")                             \
    X(PAGED_LOAD, "PAGED_CACHE_LOAD") X(DEQUANTIZE, "BLOCK_SCALE_DEQUANTIZE") X(ROPE, "ROPE_FWD") \
    X(ROPE_BACKWARD, "ROPE_BWD") X(SDPA, "SDPA_FWD") X(SDPA_BACKWARD, "SDPA_BWD")
/* clang-format on */
#define AS_ENUM(symbol, word) FACTS_IMPORT_##symbol,
typedef enum facts_import_kind {
    FACTS_IMPORT_OPERATION_LIST(AS_ENUM) FACTS_IMPORT_KIND_OTHER
} facts_import_kind;
#undef AS_ENUM

enum { FACTS_IMPORT_PORTS = 48 };

/* One named argument of an operation: "X", "matA", "Q", ... and its tensor. */
typedef struct facts_import_port {
    const char *name;
    int tensor;
} facts_import_port;

typedef struct facts_import_operation {
    facts_import_kind kind;
    const char *word;   /* as the format spells the kind */
    const char *mode;   /* "MUL", "ADD", "AMAX", ...; "" */
    const json_t *json; /* the whole node, for attributes; lives as long as the graph */
    int port_count;
    facts_import_port port[FACTS_IMPORT_PORTS];
} facts_import_operation;

typedef struct facts_import_graph {
    json_t *root;                /* owned */
    const json_t *json;          /* cuDNN's operationGraph; lives as long as the root */
    bool frontend;               /* nodes of cudnn-frontend */
    int cudnn, frontend_version; /* 92000, 11800; 0: unknown */
    int tensor_count, operation_count;
    facts_import_tensor *tensor;       /* owned */
    facts_import_operation *operation; /* owned */
} facts_import_graph;

/* Takes ownership of `root`: a graph of cudnn-frontend, or a graph, configuration or plan of cuDNN.
 * False with the reason in *error; nothing is left to free. */
bool facts_import_read(facts_import_graph *out, json_t *root, facts_error *error);
void facts_import_graph_free(facts_import_graph *graph);
/* The inner graph of a unified operation that modifies its scores. False: there is none (`error`
 * empty), or it is invalid. */
bool facts_import_subgraph(facts_import_graph *out, const facts_import_operation *operation,
                           facts_error *error);

/* Reads a number of either format: cudnn-frontend 1.20 and newer write a float as the eight hex
 * digits of its bits. False: it is no number. */
bool facts_import_number(const json_t *json, double *out);
/* A member that is a string; "". */
const char *facts_import_word(const json_t *object, const char *key);
/* The tensor in a place of an operation; -1. */
int facts_import_port_of(const facts_import_operation *operation, const char *name);
/* The tensor of that name; -1. */
int facts_import_tensor_named(const facts_import_graph *graph, const char *name);
/* The operation that writes a tensor; NULL: the tensor is an input of the graph. */
const facts_import_operation *facts_import_writer(const facts_import_graph *graph, int tensor);
/* The output argument of an operation: "Y", "matC", ...; -1 if it has several or none is known. */
int facts_import_written(const facts_import_operation *operation);
/* A [1,1,1,1] of any rank. */
bool facts_import_is_scalar(const facts_import_tensor *tensor);

#endif
