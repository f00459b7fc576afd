/* What makes a backward repeat bit for bit: data, a row for each way that is known on a range of devices and versions.
 *
 * Two ways. The form of the graph in which dQ is written directly: the engine keeps dP, whose memory grows with seq_q * seq_kv. Or
 * a pin: an engine with its knobs, which the heuristics do not offer. A row may need both.
 */
#ifndef FATTN_CUDNN_REPEAT_H
#define FATTN_CUDNN_REPEAT_H

#include "fattn/fattn.h"

/* How well a row is known. */
typedef enum fattn__repeat_grade {
    FATTN__REPEAT_RAN,      /* repeats were equal on such a GPU */
    FATTN__REPEAT_COMPILED, /* it compiles for a described device; that it repeats is said by its source */
    FATTN__REPEAT_CLAIMED   /* its source says so */
} fattn__repeat_grade;

typedef struct fattn__repeat {
    int32_t how;                  /* FATTN_DETERMINISM_FORM or _PIN */
    int32_t sm_from, sm_to;       /* 90; both ends belong to every range */
    int32_t cudnn_from, cudnn_to; /* 92300; to 0: open */
    int32_t dim_from, dim_to;     /* of dim_qk */
    bool unified;                 /* of the unified operation; otherwise of the composite graph */
    bool eight_bit;               /* of 8 bit types, whose graph has one form alone */
    bool keeps_dp;                /* the form */
    bool gives_dbias;
    bool no_bias; /* does not compile with a bias */
    int8_t knob_count;
    int64_t engine; /* -1: whatever the heuristics offer */
    fattn_knob knobs[6];
    int32_t grade; /* fattn__repeat_grade */
    int32_t reserved;
    const char *source;
} fattn__repeat;

size_t fattn__repeat_count(void);
const fattn__repeat *fattn__repeat_at(size_t i);

/* The first row that holds for a resolved deterministic backward; FATTN_DETERMINISM_AUTO takes the rows in their order. NULL: none,
 * and `why` is the reason. */
const fattn__repeat *fattn__repeat_find(const fattn_problem *problem, int cudnn_version, int sm, char *why, size_t capacity);
/* What is asked with the guards off where no row holds: the form, and whatever the heuristics offer for it. A pin has no such stand-in. */
extern const fattn__repeat fattn__repeat_unknown;

#endif
