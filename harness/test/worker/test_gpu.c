/* The worker's GPU: inputs made there, answers judged there, against the same here. Skipped where
 * there is no GPU. */
#include "../../../lib/test/support/described_h100.h"
#define RATIOS_APART 0.02
#include "../case/asked_problem.h"
#include "../judge/outcomes.h"
#include "keys/keys.h"
#include "problem/case_problem.h"
#include "worker/target/loaded_target.h"

static facts_worker open_worker(void)
{
    facts_worker worker;
    json_t *reply = NULL;
    static facts_target_request request;
    snprintf(request.cudnn_dir, sizeof request.cudnn_dir, "%s", test_cudnn());
    snprintf(request.nvrtc, sizeof request.nvrtc, "%s", test_nvrtc() ? test_nvrtc() : "");
    request.device = FACTS_DEVICE_GPU;
    if (!facts_target_open(&worker, &request, &reply) || !facts_target_prove(&worker, &reply)) {
        char *why = json_dumps(reply, JSON_ENSURE_ASCII);
        json_decref(reply);
        cr_skip_test("no GPU: %s", why);
    }
    json_decref(reply);
    cr_assert(worker.gpu, "%s", worker.gpu_error);
    return worker;
}

static void same_inputs(facts_worker *worker, const char *text)
{
    static facts_problem p;
    facts_memory here, there;
    facts_error error;
    p = problem_asked(text);
    cr_assert_eq(facts_memory_create(&there, worker, &p, false, &error), FATTN_OK, "%s: %s", text,
                 error.text);
    cr_assert_eq(facts_memory_create(&here, worker, &p, true, &error), FATTN_OK, "%s: %s", text,
                 error.text);
    cr_assert_eq(facts_memory_fill(&there, &error), FATTN_OK, "%s: %s", text, error.text);
    cr_assert_eq(facts_memory_fill(&here, &error), FATTN_OK, "%s: %s", text, error.text);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (p.tensor[id].present && !facts_tensor_is_output(&p, id) && id != FACTS_TENSOR_O &&
            id != FACTS_TENSOR_STATS)
            cr_expect(
                memcmp(facts_memory_storage(&here, id, FACTS_PATTERN_A),
                       facts_memory_storage(&there, id, FACTS_PATTERN_A),
                       (size_t)p.tensor[id].elements * facts_dtype_bytes(p.tensor[id].dtype)) == 0,
                "%s: %s", text, facts_tensor_word(id));
    facts_memory_destroy(&here);
    facts_memory_destroy(&there);
}

Test(gpu, every_fill_has_the_bits_of_the_C_one)
{
    static const char *const shapes[] = {
        "dtype=bf16 b=2 h=4/2 s=200/136 d=64",
        "dtype=f16 b=2 h=2 s=129 d=64 layout=sbhd stride=gap:q.s.8",
        "dtype=f32 b=1 h=2 s=65 d=32 mask=causal",
        "dtype=f16 b=3 h=2 s=96 d=64 lens=70+96+1 poison=nan",
        "dtype=bf16 b=2 h=2 s=64/40 d=64 bias=bhss bias_fill=random"
    };
#define AS_WORD(symbol, word) word,
    static const char *const fills[] = { FACTS_FILL_LIST(AS_WORD) };
#undef AS_WORD
    facts_worker worker = open_worker();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
            char text[300];
            static facts_problem p;
            snprintf(text, sizeof text, "pass=bwd %s fill=%s seed=%zu", shapes[s], fills[f], f + 1);
            if (resolves_to(&p, text))
                same_inputs(&worker, text);
        }
    facts_target_close(&worker);
}

static void compare(facts_worker *worker, const char *text)
{
    facts_worker here = *worker;
    here.gpu = NULL;
    compare_case(here, worker->gpu, text, "gpu");
}

Test(gpu, answers_are_judged_as_they_are_here)
{
    facts_worker worker = open_worker();
    compare(&worker, "pass=fwd dtype=bf16 b=2 h=4/2 s=192/256 d=64 want=stats");
    compare(&worker,
            "pass=fwd dtype=f16 b=2 h=2 s=200 d=128 mask=causal layout=sbhd want=max+sum_exp");
    compare(&worker, "pass=bwd dtype=bf16 b=2 h=4/2 s=192/256 d=64 deterministic=1");
    compare(&worker, "pass=bwd dtype=f16 b=3 h=2 s=128 d=64 lens=77+128+1 deterministic=1");
    facts_target_close(&worker);
}

/* The data of a check is changed on the host, and judged where it is. */
Test(gpu, a_check_finds_the_same_there)
{
    static const char *const cases[] = {
        "pass=fwd dtype=bf16 b=2 h=4/2 s=192/256 d=64 want=stats check=identities",
        "pass=fwd dtype=f16 b=2 h=2 s=200 d=128 mask=causal check=nonfinite",
        "pass=bwd dtype=f16 b=2 h=2 s=200 d=64 mask=causal deterministic=1 check=nonfinite",
        "pass=bwd dtype=bf16 b=2 h=4/2 s=192/256 d=64 deterministic=1 check=identities"
    };
    facts_worker worker = open_worker();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        compare(&worker, cases[i]);
    facts_target_close(&worker);
}

/* Half the blocks of a first call may find what the other half left; of a second one, all do, but
 * for what the counting itself runs between. */
Test(gpu, shared_memory_holds_what_was_left_in_it)
{
    double before, after;
    facts_worker worker = open_worker();
    cr_assert_eq(facts_gpu_shared(worker.gpu, &before), FATTN_OK);
    cr_assert_eq(facts_gpu_shared(worker.gpu, &after), FATTN_OK);
    printf("NaN in shared memory: %.4f, then %.4f\n", before, after);
    cr_expect(before < 0.6 && after > 0.95, "%.4f, then %.4f", before, after);
    facts_target_close(&worker);
}
