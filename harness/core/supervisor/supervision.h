/* Inside the supervisor: the state of one run. supervise.c schedules, slot.c leads one worker:
 * these call each other, as a state machine does.
 * README.md lists the parts. */
#ifndef FACTS_SUPERVISION_H
#define FACTS_SUPERVISION_H

#include <uv.h>

#include "compose.h"
#include "order.h"
#include "process.h"

/* FREE: done, and its place in `work` may be given to another case. */
typedef enum facts_item_state {
    FACTS_ITEM_TODO,
    FACTS_ITEM_BUSY,
    FACTS_ITEM_DONE,
    FACTS_ITEM_FREE
} facts_item_state;

/* Queues of cases that need the same environment: cuDNN reads rescale= when the worker starts. A
 * worker first takes the cases of its own queue, because a case of another queue needs a new
 * worker. */
#define FACTS_QUEUES                                                                               \
    8 /* 0: without rescale=; the last queue: every threshold without a queue of its own */
typedef struct facts_queue {
    size_t cursor; /* nothing to do before it, but what is crowded */
    size_t todo;
    size_t crowded; /* of those: they wait for a worker that has a GPU alone */
    int workers;    /* that took their last case here, or were started for it */
} facts_queue;

/* One planned (case, target). */
typedef struct facts_item {
    uint8_t state; /* facts_item_state */
    uint8_t queue;
    uint8_t attempts;
    bool had_no_room : 1; /* there was no memory for it on a GPU that it shared, or its case needs
                             the GPU alone */
    bool fresh : 1; /* a worker replied `again` to it: only a worker that has launched no engine is
                       asked */
    int32_t from_config;
    uint32_t serial; /* with on_free: the order in which cases were added; places are used again */
} facts_item;

/* A private folder of links in TMPDIR, locked while its run lives. */
typedef struct facts_links {
    char folder[FACTS_PATH];
    int lock;
} facts_links;

typedef struct facts_target_state {
    const facts_target *target;
    facts_item *items; /* one for each case */
    size_t item_count;
    size_t todo;    /* items that are neither busy nor done */
    size_t crowded; /* of those: cases that had no memory. They wait for a worker that has a GPU
                       alone, at the end */
    facts_queue queues[FACTS_QUEUES];
    int live, starting, start_failures, starts_without_room;
    bool failed, ready, hung; /* ready: some worker has been; hung: some case has */
    char device[112], cudnn[24];
    facts_links links;    /* made with the first worker */
    char version[24];     /* of cuDNN, as the first worker reported it */
    facts_text libraries; /* the array of its libraries */
    int sm;
    double start_ms, busy_ms; /* of the first start; of all answers */
    size_t answers;
} facts_target_state;

/* One GPU, whichever targets use it. */
typedef struct facts_gpu {
    int live;
    int workers;  /* allowed by its memory; 0: no worker has reported the free memory yet */
    int compiled; /* plans, by its workers; so many that more do not matter, at most */
    bool ready;   /* some worker has been, here */
    bool no_room; /* a worker found no memory to start. No other starts beside it until a worker of
                     this GPU has ended */
    bool alone;   /* its worker asks what had no room: no other comes */
    uint64_t full_until; /* uv_hrtime; somebody else has its memory, and no worker starts before. 0:
                            not so */
} facts_gpu;

#define FACTS_NO_GPU (-1)

typedef enum facts_phase {
    FACTS_PHASE_STARTING,
    FACTS_PHASE_BUSY,
    FACTS_PHASE_IDLE,
    FACTS_PHASE_CLOSING,
    FACTS_PHASE_BYE,
    FACTS_PHASE_FAILED
} facts_phase;

typedef struct facts_supervision facts_supervision;

/* One worker and what it has in hand. */
typedef struct facts_slot {
    facts_supervision *run;
    size_t target, work;
    facts_process *process;
    facts_phase phase;
    int queue;
    int gpu;          /* its number; FACTS_NO_GPU */
    bool alone;       /* it has its GPU to itself, for what had no room */
    bool nonsense;    /* it answered what is no row */
    bool had_company; /* another worker of its GPU has gone since the request in hand */
    size_t finished; /* the last case that it finished, and 1; it has the case in hand until it asks
                        another. 0: none */
    int64_t id;
    int config; /* in hand; -1: none */
    char stage[32];
    uint64_t since; /* uv_hrtime of the start or the request */
    bool keeps;     /* it can launch the case in hand again */
    bool in_turn;   /* its request is one turn */
    char *
        held; /* the worker's last row; it is written when the worker has ended without a failure */
    bool reported; /* the row was written already, because someone waits for it; only a failure at
                      the worker's end adds a line */
    size_t held_length;
    double held_ms;
    struct facts_slot *next;
} facts_slot;

/* Where a run with another_round is. */
typedef struct facts_turns {
    size_t work, next; /* next: place in the round */
    int round;
    bool any; /* somebody had a turn in this round */
} facts_turns;

struct facts_supervision {
    const facts_order *order;
    facts_turns turns;
    facts_outcome_counts *counts;
    uv_loop_t loop;
    uv_signal_t signals[3];
    uv_timer_t tick;
    facts_target_state *targets;
    facts_gpu *gpus; /* by number */
    int gpu_count;
    facts_slot *slots;
    facts_line *line, *row; /* scratch: a reply, and the row inside it */
    facts_text text, evidence;
    char driver[FACTS_PATH];
    char environments[FACTS_QUEUES][16]; /* facts_case_process, by queue */
    int queue_count;
    int jobs, live, threads;
    int64_t next_id;
    int signals_seen;
    bool stopping, closing;
    double timeout_s;
};

/* slot.c */
bool facts_slot_start(facts_supervision *run, size_t target, int gpu);
void facts_slot_kill_all(facts_supervision *run);
/* Idle workers take new work, or end if no more can come. */
void facts_slot_wake_all(facts_supervision *run);

/* Asks the case of an item that was taken. */
void facts_slot_ask(facts_slot *slot, size_t work);
/* Asks for one turn with the case that the worker keeps. */
void facts_slot_take_turn(facts_slot *slot, size_t work);
void facts_slot_close(facts_slot *slot);

/* Writes what the end of the worker says, and gives its case back or its target up. Its slot is in
 * no list any more. */
void facts_slot_died(facts_slot *slot, const facts_death *death);

/* Sends the next question of a run with another_round, unless a worker is busy. Closes the workers
 * at the end. */
void facts_turns_go_on(facts_supervision *run);

/* supervise.c */
/* Takes over the answers that the resumed record has for a target. Called once, when the device's
 * name is known. */
void facts_look_up(facts_supervision *run, size_t target);
/* Takes the next item of the slot's target, from its own queue first, and sets the slot's work and
 * queue. False if nothing is left that is worth another start, or the run stops. */
bool facts_next_item(facts_supervision *run, facts_slot *slot);
void facts_item_done(facts_supervision *run, size_t target, size_t work);
/* The worker that finished the item has nothing of it in hand any more. */
void facts_item_free(facts_supervision *run, size_t target, size_t work);
void facts_item_again(facts_supervision *run, size_t target, size_t work, int from_config);
/* As facts_item_again, for a worker that has a GPU alone. Once for each item; false: the item was
 * repeated already. */
bool facts_item_again_alone(facts_supervision *run, size_t target, size_t work, int from_config);
void facts_schedule(facts_supervision *run);
/* Every open item of the target becomes `inconclusive` for this reason. */
void facts_fail_target(facts_supervision *run, size_t target, const char *class_word,
                       const char *text, const char *remedy);

/* gpus.c: pure, except for the environments */
/* The queue of a case: by the environment that its process needs. */
uint8_t facts_queue_of(facts_supervision *run, const facts_case *c);
/* For a worker of queue `own`: `own`, or a queue without a worker that has more work than this
 * worker's part of its own. */
int facts_queue_first(const facts_target_state *state, int own);
/* For a worker that has tried some queues without success, or that starts (`tried` NULL): of the
 * others, the queue with most work for each of its workers; -1: in none is there so much that a
 * start is worth it. `alone`: it has its GPU alone. */
int facts_queue_next(const facts_supervision *run, const facts_target_state *state, bool alone,
                     const bool *tried);

/* gpus.c: pure, except for the state of the GPUs */
void facts_gpus_prepare(facts_supervision *run);
/* The GPU of the target with the fewest workers that has room for one more. False: none has.
 * FACTS_NO_GPU for a target without GPUs. */
bool facts_gpu_choose(const facts_supervision *run, const facts_target_state *state, int *gpu);
void facts_gpu_enter(facts_slot *slot);
/* Others may start on its GPU again, unless this worker found no memory to start. */
void facts_gpus_leave(const facts_slot *slot);
/* The number of workers on the slot's GPU, of all targets; 0: the slot has no GPU. */
int facts_gpu_live(const facts_slot *slot);
/* A worker is ready on the GPU and reports its free memory (0: unknown). The first report counts.
 */
void facts_gpu_is_ready(const facts_slot *slot, int64_t bytes_free);
/* A worker of the slot compiled a plan. True: more workers may start. */
bool facts_gpu_compiled(const facts_slot *slot);
/* False: a first worker is still starting on another GPU of the target, which may be of another
 * kind. No question is sent before. */
bool facts_gpus_are_proved(const facts_slot *slot);
/* A worker found the memory of its GPU taken, and by no worker of this run: the next one starts
 * after a pause, twice as long each time. False: that was tried for a minute, or no worker of the
 * target has ever been ready. */
bool facts_gpu_wait_for_room(const facts_slot *slot);
/* Does the run wait for the memory of a GPU? Pauses that are over have ended. */
bool facts_gpus_wait(facts_supervision *run);

/* target_ready.c */
/* Checks a ready worker: the memory of its GPU, and that the GPU is of the target's kind. False: it
 * is another kind, and the target is given up. */
bool facts_worker_ready(facts_slot *slot, facts_span ready);
/* Uses what a target's first worker reports: the name of the device, and the target line. Call it
 * once for each target. */
void facts_target_ready(facts_supervision *run, size_t target, facts_span ready);

/* ---- rows */
typedef struct facts_row_extra {
    double wall_ms;
    bool more;
    const char *verdict, *note; /* as in facts_frame */
} facts_row_extra;
/* `text` is the object that the worker sent, or facts_compose_evidence made. False: not a row
 * (nothing was written). */
bool facts_write_row(facts_supervision *run, size_t target, size_t work, const char *text,
                     size_t length, facts_row_extra extra);
void facts_write_line(facts_supervision *run, const facts_text *line);
/* The record cannot go on: the run ends, and says why. */
void facts_record_ends(facts_supervision *run, const char *why);
/* One turn: its line, and on_turn. */
void facts_write_turn(facts_supervision *run, size_t target, size_t work, facts_span turn);

/* links.c */
/* One block, freed with free(). value: of `variable`; "": not set. */
char **facts_worker_environment(const facts_target *target, const char *links, int threads,
                                const char *variable, const char *value);

/* links.c */
/* Makes a private folder of links to the build's libraries under the names that cuDNN asks the
 * loader for first (libcudnn_graph.so.9.14.0). Its name is empty when the folder cannot be made: a
 * worker that maps another copy then says so. Also removes the folders of runs that were killed. */
void facts_links_make(facts_links *out, const facts_build *build);
void facts_links_remove(facts_links *links);

#endif
