/* The ways to make a backward repeat bit for bit: a table with a row for each way that is known for
 * a range of devices and versions.
 *
 * There are two ways. The first is the form of the graph in which dQ is written directly: the
 * engine then keeps dP, whose memory grows with seq_q * seq_kv. The second is a pin: an engine with
 * knobs that the heuristics do not offer. A row may need both. */
#ifndef FATTN_CUDNN_REPEAT_H
#define FATTN_CUDNN_REPEAT_H

#include "fattn/fattn.h"

/* The evidence for a row. */
typedef enum fattn__repeat_grade {
    FATTN__REPEAT_RAN,      /* repeats were equal on such a GPU */
    FATTN__REPEAT_COMPILED, /* it compiles for a described device; its source says that it repeats
                             */
    FATTN__REPEAT_CLAIMED   /* its source says so */
} fattn__repeat_grade;

typedef struct fattn__repeat {
    int32_t how;                  /* FATTN_DETERMINISM_FORM or _PIN */
    int32_t sm_from, sm_to;       /* 90; every range includes both ends */
    int32_t cudnn_from, cudnn_to; /* 92300; cudnn_to 0: no end */
    int32_t dim_from, dim_to;     /* of dim_qk */
    bool unified;   /* row of the unified operation; otherwise of the composite graph */
    bool eight_bit; /* row of 8-bit types, whose graph has one form only */
    bool keeps_dp;  /* the form */
    bool gives_dbias;
    bool no_bias; /* does not compile with a bias */
    int8_t knob_count;
    int64_t engine; /* -1: any engine that the heuristics offer */
    fattn_knob knobs[6];
    int32_t grade; /* fattn__repeat_grade */
    int32_t reserved;
    const char *source;
} fattn__repeat;

/* The first row that applies to a resolved deterministic backward. FATTN_DETERMINISM_AUTO takes the
 * rows in their order. NULL: no row applies, and `why` is the reason. */
const fattn__repeat *fattn__repeat_find(const fattn_problem *problem, int cudnn_version, int sm,
                                        char *why, size_t capacity);
/* The row for guards=off if no row applies: the form, with any engine that the heuristics offer.
 * There is no such row for a pin. */
extern const fattn__repeat fattn__repeat_unknown;

#endif
