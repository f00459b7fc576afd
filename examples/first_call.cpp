// The shortest whole use in C++: one forward call on the CPU. The lines between the marks stand at
// the top of fattn.hpp too.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fattn/fattn.hpp>
#include <vector>

namespace
{
// Memory that is aligned to 16 bytes, as a call wants it.
struct block {
    alignas(16) float number[4];
};

float *data(std::vector<block> &of)
{
    return of.front().number;
}

double run()
{
    std::vector<block> q(2 * 128 * 8 * 16), k(2 * 128 * 2 * 16),
        v(k.size(), block{ { 3, 3, 3, 3 } }), o(q.size());
    /* begin */
    auto options = fattn::context_options();
    options.device_kind = FATTN_DEVICE_CPU; // a GPU: FATTN_DEVICE_GPU, options.cudnn_dir, and
                                            // addresses of device memory
    const fattn::context context(options);
    auto problem =
        fattn::problem(); // a field that is 0 has its default: dense b,s,h,d, scale 1/sqrt(dim_qk)
    problem.dtype = FATTN_F32, problem.batch = 2, problem.heads_q = 8, problem.heads_k = 2;
    problem.seq_q = problem.seq_kv = 128, problem.dim_qk = 64, problem.has_right = 1; // causal
    const fattn::plan plan(context, problem);
    auto tensors = fattn::tensors();
    tensors.q = data(q), tensors.k = data(k), tensors.v = data(v), tensors.o = data(o);
    const fattn::buffer workspace(context, plan.workspace_bytes());
    tensors.workspace = workspace.get(), tensors.workspace_bytes = workspace.size();
    plan.forward(tensors);
    /* end */
    double worst = 0; // every row of P sums to 1, so a constant V comes out as it went in
    for (const block &four : o)
        for (const float number : four.number)
            worst = std::max(worst, std::fabs(static_cast<double>(number) - 3.0));
    return worst / 3.0;
}

// The other form: nothing is thrown, and the reason is a value.
bool refused_with_a_reason(const fattn::context &context)
{
    auto problem = fattn::problem();
    problem.batch = -1;
    const auto plan = fattn::plan::try_create(context, problem);
    return !plan && plan.status() == FATTN_BAD_PROBLEM && !plan.text().empty();
}
} // namespace

int main()
try {
    const double error = run();
    auto options = fattn::context_options();
    options.device_kind = FATTN_DEVICE_CPU;
    const bool refused = refused_with_a_reason(fattn::context(options));
    std::printf("first call in C++: relative error %.3g, %s\n", error,
                refused ? "a bad problem is refused" : "a bad problem is taken");
    return error < 1e-6 && refused ? 0 : 1;
} catch (const fattn::error &failure) {
    std::fprintf(stderr, "%s: %s\n", fattn_status_name(failure.status()), failure.what());
    return failure.status() == FATTN_ENVIRONMENT ? 3 : 1;
}
