/* How many workers a GPU gets. */
#include <criterion/criterion.h>

#include "supervisor/supervision.h"

typedef struct one_gpu {
    facts_order order;
    facts_target target;
    facts_gpu gpu;
    facts_target_state state;
    facts_supervision run;
} one_gpu;

static void prepare(one_gpu *x, int jobs)
{
    *x = (one_gpu){ .order = { .jobs = jobs },
                    .target = { .kind = FACTS_TARGET_GPU, .gpus = 1 },
                    .state = { .todo = 1000 } };
    x->state.target = &x->target;
    x->run = (facts_supervision){ .order = &x->order, .gpus = &x->gpu, .gpu_count = 1 };
}

/* All that have room. */
static int started(one_gpu *x)
{
    int gpu;
    while (facts_gpu_choose(&x->run, &x->state, &gpu)) {
        facts_slot slot = { .run = &x->run, .gpu = gpu };
        facts_gpu_enter(&slot);
    }
    return x->gpu.live;
}

Test(gpus, few_workers_start_and_each_compiled_plan_brings_more)
{
    one_gpu x;
    prepare(&x, 0);
    const facts_slot slot = { .run = &x.run, .gpu = 0 };
    cr_expect_eq(started(&x), 4);
    facts_gpu_is_ready(&slot, 40000000000);
    cr_expect_eq(started(&x), 4, "all plans are loaded: %d", x.gpu.live);
    cr_expect(facts_gpu_compiled(&slot));
    cr_expect_eq(started(&x), 8);
    for (int i = 0; i < 1000; i++)
        facts_gpu_compiled(&slot);
    cr_expect_eq(started(&x), 10, "40 GB are enough for ten: %d", x.gpu.live);
}

Test(gpus, a_stated_number_of_workers_starts)
{
    one_gpu x;
    prepare(&x, 13);
    cr_expect_eq(started(&x), 13);
}
