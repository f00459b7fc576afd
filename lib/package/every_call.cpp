// Every call of fattn.hpp on the CPU, in both forms.
#include <algorithm>
#include <cstdio>
#include <fattn/fattn.hpp>
#include <type_traits>
#include <vector>

namespace
{
int failures = 0;

void expect(bool holds, const char *what)
{
    if (!holds) {
        std::fprintf(stderr, "not so: %s\n", what);
        failures++;
    }
}

template <typename T>
constexpr bool moves_only =
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
    !std::is_copy_constructible_v<T>;
static_assert(moves_only<fattn::context> && moves_only<fattn::decision> &&
              moves_only<fattn::plan> && moves_only<fattn::buffer> && moves_only<fattn::stream>);

fattn_problem asked()
{
    auto problem = fattn::problem();
    problem.dtype = FATTN_F32, problem.batch = 1, problem.heads_q = 2,
    problem.seq_q = problem.seq_kv = 16, problem.dim_qk = 16, problem.training = 1;
    return problem;
}

template <typename Call> fattn_status thrown(Call &&call)
{
    try {
        call();
    } catch (const fattn::error &failure) {
        expect(failure.what()[0] != '\0', "a failure has a sentence");
        return failure.status();
    }
    return FATTN_OK;
}

void decisions(const fattn::context &cpu)
{
    const fattn::decision yes(cpu, asked());
    expect(yes.supported() && yes.backend() == FATTN_BACKEND_CPU &&
               yes.reason() == FATTN_REASON_NONE && yes.engines().size() == 1,
           "supported");
    auto problem = asked();
    problem.heads_q = 3, problem.heads_k = 2;
    const fattn::decision no(cpu, problem);
    expect(!no.supported() && no.text()[0] != '\0', "a bad problem is an answer");
    expect(no.supported() == static_cast<bool>(fattn::plan::try_create(cpu, problem)),
           "no plan of it");
    const auto near = fattn::try_explain(cpu, asked(), 5);
    expect(near && !near->empty() && near->size() <= 5 && near->front().change[0] != 0,
           "neighbours");
    expect(!fattn::try_resolve(problem) && fattn::try_resolve(asked())->dim_v == 16, "resolve");
}

void changes_of_the_score(const fattn::context &cpu)
{
    const double cap = 20;
    const auto capped = fattn::score_mod::create([&](fattn_recorder *recorder, fattn_value score) {
        const fattn_value by = fattn_record_constant(recorder, cap);
        const fattn_value inner = fattn_record(
            recorder, FATTN_MOD_TANH, fattn_record(recorder, FATTN_MOD_DIV, score, by, 0), 0, 0);
        return fattn_record(recorder, FATTN_MOD_MUL, inner, by, 0);
    });
    fattn_score_mod *raw = nullptr;
    fattn::check(fattn_score_mod_softcap(&raw, cap));
    const auto ready = fattn::score_mod::own(raw);
    expect(fattn_score_mod_same(capped.get(), ready.get()),
           "a recorded lambda is the ready modification");
    auto problem = asked();
    problem.score_mod = capped.get();
    expect(fattn::decision(cpu, problem).supported(), "a modification is computed");
    expect(thrown([] {
               fattn::score_mod::create(
                   [](fattn_recorder *, fattn_value) { return fattn_value{ -1 }; });
           }) == FATTN_BAD_PROBLEM,
           "a recording of nothing");
}

void policies()
{
    fattn_policy pushed{};
    pushed.struct_size = sizeof pushed;
    {
        const fattn::policy outer(pushed);
        fattn::policy inner = fattn::policy::try_push(pushed).value(), none;
        expect(fattn_policy_depth() == 2, "two policies hold");
        none = std::move(inner);
    }
    expect(fattn_policy_depth() == 0, "policies end with their scope");
    pushed.struct_size = 1;
    expect(thrown([&] { const fattn::policy bad(pushed); }) == FATTN_BAD_PROBLEM &&
               fattn_policy_depth() == 0,
           "a refused policy");
}

void graphs(const fattn::context &cpu)
{
    const fattn::plan plan(cpu, asked());
    const fattn::stream none;
    bool asked = false;
    expect(thrown([&] {
               fattn::graph::capture(cpu, none, [&] {
                   asked = true;
                   return FATTN_OK;
               });
           }) == FATTN_UNSUPPORTED &&
               !asked,
           "the cpu captures nothing");
    expect(thrown([&] { fattn::graph::native(plan, fattn::tensors()); }) == FATTN_UNSUPPORTED,
           "the cpu has no native graph");
}

void handles(const fattn::context &cpu)
{
    fattn::plan one(cpu, asked()), two;
    const fattn_plan *raw = one.get();
    two = std::move(one);
    expect(two.get() == raw && !one && two.covers(asked()) && two.backend() == FATTN_BACKEND_CPU,
           "a moved plan");
    two = fattn::plan::own(two.release());
    expect(two.get() == raw, "a released plan");
    expect(fattn::plan::share(cpu, asked()).get() == fattn::plan::share(cpu, asked()).get(),
           "a shared plan");
    expect(thrown([&] { two.save(); }) == FATTN_UNSUPPORTED &&
               two.try_save().status() == FATTN_UNSUPPORTED,
           "the cpu saves no plan");
    expect(thrown([&] { fattn::plan::load(cpu, asked(), "no plan"); }) != FATTN_OK,
           "bytes that are no plan");
    fattn::buffer memory(cpu, 64), empty;
    const std::vector<char> in(64, 'x');
    std::vector<char> out(64);
    empty = std::move(memory);
    empty.write(in.data(), in.size());
    empty.read(out.data(), out.size());
    expect(in == out && empty.size() == 64 && memory.get() == nullptr, "a moved buffer");
    auto made = fattn::stream::try_create(cpu);
    if (made) {
        fattn::stream stream, other = std::move(made).value();
        stream = std::move(other);
        stream.synchronize();
    }
}

void passes(const fattn::context &cpu)
{
    auto problem = asked();
    const fattn::plan forward(cpu, problem);
    problem.pass = FATTN_BACKWARD;
    const fattn::plan backward(cpu, problem);
    const size_t bytes = 2 * 16 * 16 * sizeof(float);
    std::vector<fattn::buffer> all;
    const std::vector<float> ones(2 * 16 * 16, 1.0F);
    for (int i = 0; i < 9; i++) {
        all.emplace_back(cpu, bytes);
        all.back().write(ones.data(), bytes);
    }
    const auto number = [&](int i) {
        return static_cast<float *>(all[static_cast<size_t>(i)].get());
    };
    auto tensors = fattn::tensors();
    tensors.q = number(0), tensors.k = number(1), tensors.v = number(2), tensors.o = number(3),
    tensors.stats = number(4);
    const fattn::buffer scratch(
        cpu, std::max(forward.workspace_bytes(), backward.workspace_bytes()) + 1);
    tensors.workspace = scratch.get(), tensors.workspace_bytes = scratch.size();
    forward.forward(tensors);
    tensors.d_o = number(5), tensors.dq = number(6), tensors.dk = number(7), tensors.dv = number(8);
    backward.backward(tensors);
    std::vector<float> dv(ones.size());
    all[8].read(dv.data(), bytes);
    expect(dv[0] > 0.999F && dv[0] < 1.001F, "dV of equal scores");
    expect(forward.try_backward(tensors) != FATTN_OK &&
               thrown([&] { forward.backward(tensors); }) == forward.try_backward(tensors),
           "the wrong pass");
    expect(forward.milliseconds() >= 0 && forward.engine().index >= 0, "an engine");
}
} // namespace

int main()
{
    auto options = fattn::context_options();
    options.device_kind = FATTN_DEVICE_CPU;
    const fattn::context cpu(options);
    expect(cpu.info().cudnn_version == 0, "the cpu has no cuDNN");
    decisions(cpu);
    handles(cpu);
    passes(cpu);
    changes_of_the_score(cpu);
    policies();
    graphs(cpu);
    options.struct_size = 3;
    expect(thrown([&] { const fattn::context bad(options); }) == FATTN_BAD_PROBLEM || failures,
           "a struct of no size");
    std::printf("%d failures\n", failures);
    return failures != 0;
}
