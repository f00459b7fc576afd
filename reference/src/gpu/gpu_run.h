/* One call of the oracle on a GPU: its scratch memory, its launches, and how a problem is cut into
 * slices of heads and chunks of rows. */
#ifndef FREF_GPU_RUN_H
#define FREF_GPU_RUN_H

#include <fref/gpu.h>
#include <gpu/gpu_module.h>

#include "../../cuda/oracle_kernels.h"

/* Scratch memory, each piece as large as the largest request so far. X(NAME) */
/* clang-format off */
#define FREF__BUFFER_LIST(X)                                                                    \
    X(ZEROS) X(RANGE) X(TILE_RANGE) X(ROWS_Q) X(ROWS_D_O) X(KEYS_K) X(KEYS_V) X(NORM_Q)         \
    X(NORM_D_O) X(NORM_K) X(NORM_V) X(PEAK_K) X(PEAK_V) X(ROW_STATS)                             \
    X(SCORES) X(DP) X(EXTRA) X(PULL) X(SLOPE) X(CURVATURE) X(SLOPE_EXTRA) X(FACTS) X(SUMS_ROWS) \
    X(SUMS_K) X(SUMS_V) X(TOTAL_K) X(TOTAL_V) X(BIAS) X(RELATED) X(SHARES) X(CHANNELS)          \
    X(GROUP_CHANNELS_K) X(GROUP_CHANNELS_V) X(WEIGHTS_K) X(WEIGHTS_V)
/* clang-format on */

typedef enum fref__buffer {
#define FREF__AS_BUFFER(name) FREF__##name,
    FREF__BUFFER_LIST(FREF__AS_BUFFER)
#undef FREF__AS_BUFFER
        FREF__BUFFER_COUNT
} fref__buffer;

struct fref_gpu {
    const gpu_driver *driver;
    gpu_module *module;
    size_t budget; /* bytes of one slice at most; 0: the free memory decides */
    int busy;      /* blocks that keep every GPU busy */
    int multiprocessors;
    uint64_t runs;             /* begun */
    bool scores_left;          /* by the last of them: all heads' and rows', plain */
    bool ahead;                /* forwards do not wait for the GPU, */
    bool owes;                 /* and one has not yet reported its findings about its inputs */
    volatile int32_t *trouble; /* on the host, written by kernels */
    struct {
        gpu_address at;
        size_t bytes;
    } buffer[FREF__BUFFER_COUNT];
};

/* The kernels of reference/cuda, made a part of the library when it is built; empty without a CUDA
 * compiler. */
extern const gpu_image fref__gpu_image;
/* With another image than this library's: for tests. */
int fref__gpu_create(fref_gpu **out, const gpu_image *image, char error[256]);

/* After the first failure there is no further launch; `status` and `error` keep it. */
typedef struct fref__run {
    fref_gpu *gpu;
    fref__call call;
    struct CUstream_st *stream;
    char *error;
    int status;
    int64_t heads, heads_of_slice;
    bool has_scores; /* memory still has those of an earlier run */
    bool goes_on;    /* an earlier run has not yet reported its findings */
    /* The memory that is zero when the run begins, and behind it the flags, which are zero when a
     * slice begins. */
    struct {
        uint8_t *at;
        int64_t slice, end; /* where the flags begin and end */
        int64_t lossy;      /* the place of the slice's next flags */
        int64_t related;    /* fref__call.related_blocks */
        bool slice_is_clear;
    } zeros;
} fref__run;

/* Fills in everything that follows from the problem. A problem that the kernels do not support:
 * status ENOTSUP. */
void fref__run_start(fref__run *run, fref_gpu *gpu, const fref_problem *problem,
                     const fref_gpu_mod *mod, const fref_rounding *rounding,
                     struct CUstream_st *stream, char error[256]);
/* P is multiplied by scale_s and this before its cast. */
void fref__run_cast_p(fref__run *run, double scale);
/* Starts an amax; NULL: not wanted. */
void fref__run_amax(fref__run *run, double *out);
/* Waits for all work. Checks whether the kernels can handle the inputs, also those of an earlier
 * run that has not reported. Returns the status. */
int fref__run_end(fref__run *run);

/* Memory of a slice: reuses the earlier allocation, or grows it. Old contents are lost when it
 * grows. */
void fref__run_clear(fref__run *run, void *at, int64_t bytes);
double *fref__run_doubles(fref__run *run, fref__buffer which, int64_t count);

void fref__run_launch(fref__run *run, fref__kernel kernel, int64_t blocks, int threads);
void fref__run_launch_with(fref__run *run, fref__kernel kernel, int64_t blocks, int threads,
                           int argument);
void fref__run_launch_grid(fref__run *run, fref__kernel kernel, const unsigned grid[3],
                           int threads);

/* fref__run_keep_zeros reserves bytes that are zero when the run begins: call it before
 * fref__run_plan. After that call, fref__run_zeros is their address. */
int64_t fref__run_keep_zeros(fref__run *run, int64_t bytes);
void *fref__run_zeros(const fref__run *run, int64_t at);
/* Flags of `tiles` tiles, zero when the slice begins, for at most three kinds of sums; NULL without
 * memory. */
uint8_t *fref__run_flags(fref__run *run, int64_t tiles);

/* Sets heads_of_slice, from `bytes_of_head` in addition to the scores and the number of `matrices`
 * of scores. A slice is a multiple of `align` heads. */
void fref__run_plan(fref__run *run, int64_t bytes_of_head, int64_t matrices, int64_t align);
void fref__run_take_slice(fref__run *run, int64_t head0);
/* Rows of a chunk of the slice. */
void fref__run_plan_chunks(fref__run *run, int64_t bytes_of_head, int64_t matrices);
void fref__run_take_chunk(fref__run *run, int64_t row0);
int64_t fref__run_score_matrices(const fref__run *run);

/* Ranges and decoded inputs of the slice. */
void fref__run_prepare(fref__run *run);
/* Is there only one chunk, and are its scores those of Q and K alone? */
bool fref__run_is_one_chunk(const fref__run *run);
/* Scores of the chunk, modified; or with `gradient` dO . v. */
void fref__run_scores(fref__run *run, int gradient);
/* The chunk's facts, of all rows: fref__kernel_forward_facts or _backward_facts. */
void fref__run_facts(fref__run *run, fref__kernel kernel);
/* 1 / nch of the slice's tensors that have memory: fref__call.channels. The next launch of scores
 * makes them. */
void fref__run_relate(fref__run *run);
/* The number of blocks that turn the sums of that many rows or keys of each head into answers. */
int64_t fref__run_finish_blocks(int64_t heads, int64_t rows);
/* For the chunk, without rows that are only padding. */
int64_t fref__run_row_tiles(const fref__run *run);
/* One kind of sums, and the part of it that may be flushed (FREF__KERNEL_COUNT: not wanted);
 * `tiles` of rows or keys in each head. */
void fref__run_sums(fref__run *run, fref__kernel kernel, fref__kernel lost, int64_t tiles,
                    int64_t columns);

#endif
