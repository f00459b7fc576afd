/* fattn.hpp: libfattn for C++17, a header-only wrapper. Handles own their objects and can be moved, not copied.
 * From examples/first_call.cpp:
 *
 *     auto options = fattn::context_options();
 *     options.device_kind = FATTN_DEVICE_CPU; // a GPU: FATTN_DEVICE_GPU, options.cudnn_dir, and
 *                                             // addresses of device memory
 *     const fattn::context context(options);
 *     auto problem =
 *         fattn::problem(); // a field that is 0 has its default: dense b,s,h,d, scale 1/sqrt(dim_qk)
 *     problem.dtype = FATTN_F32, problem.batch = 2, problem.heads_q = 8, problem.heads_k = 2;
 *     problem.seq_q = problem.seq_kv = 128, problem.dim_qk = 64, problem.has_right = 1; // causal
 *     const fattn::plan plan(context, problem);
 *     auto tensors = fattn::tensors();
 *     tensors.q = data(q), tensors.k = data(k), tensors.v = data(v), tensors.o = data(o);
 *     const fattn::buffer workspace(context, plan.workspace_bytes());
 *     tensors.workspace = workspace.get(), tensors.workspace_bytes = workspace.size();
 *     plan.forward(tensors);
 *
 * Errors   Each operation has two forms. The plain one throws fattn::error. The one called try_... throws nothing: it returns a status, or a
 *          result<T> with a status and, if that is FATTN_OK, a value. With exceptions switched off only the second form exists.
 * Memory   A handle destroys its object when it goes out of scope. get() returns the C handle, which the C++ handle still owns. release()
 *          returns it and gives up the ownership.
 * Calls    fattn.h, cache.h, graph.h, policy.h and score_mod.h say the shapes, the stream order, the threads and the status of each call.
 */
#ifndef FATTN_HPP
#define FATTN_HPP

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cache.h"
#include "device.h"
#include "fattn.h"
#include "graph.h"
#include "policy.h"
#include "score_mod.h"

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

namespace fattn
{

/* ---- errors
 * -------------------------------------------------------------------------------------------------------------------
 */

#if defined(__cpp_exceptions)
/* A failed call. what() is the sentence for people; programs read status(). */
class error : public std::runtime_error
{
  public:
    error(fattn_status status, const std::string &text) : std::runtime_error(text), status_(status)
    {
    }
    fattn_status status() const noexcept
    {
        return status_;
    }

  private:
    fattn_status status_;
};

/* Throws the failure that the library has just reported on this thread. */
inline void check(fattn_status status)
{
    if (status != FATTN_OK)
        throw error(status, fattn_last_error());
}
#endif

/* A value, or the status and the sentence of the failure. */
template <typename T> class result
{
  public:
    explicit result(T value) : value_(std::move(value))
    {
    }
    explicit result(fattn_status status) : status_(status), text_(fattn_last_error())
    {
    }

    explicit operator bool() const noexcept
    {
        return status_ == FATTN_OK;
    }
    fattn_status status() const noexcept
    {
        return status_;
    }
    const std::string &text() const noexcept
    {
        return text_;
    } /* the sentence for people; empty if there is a value */
    /* The value. Undefined if the status is not FATTN_OK. */
    T &operator*() noexcept
    {
        return value_;
    }
    const T &operator*() const noexcept
    {
        return value_;
    }
    T *operator->() noexcept
    {
        return &value_;
    }
    const T *operator->() const noexcept
    {
        return &value_;
    }
#if defined(__cpp_exceptions)
    /* Moves the value out; throws fattn::error if there is none. */
    T value() &&
    {
        if (status_ != FATTN_OK)
            throw error(status_, text_);
        return std::move(value_);
    }
#endif

  private:
    T value_;
    fattn_status status_ = FATTN_OK;
    std::string text_;
};

/* ---- structs with their size and defaults
 * ------------------------------------------------------------------------------------------ */

inline fattn_context_options context_options() noexcept
{
    fattn_context_options out{};
    out.struct_size = sizeof out;
    return out;
}

inline fattn_problem problem() noexcept
{
    fattn_problem out{};
    out.struct_size = sizeof out;
    return out;
}

inline fattn_plan_options plan_options() noexcept
{
    fattn_plan_options out{};
    out.struct_size = sizeof out;
    out.engine = out.config = FATTN_ENGINE_AUTO;
    return out;
}

inline fattn_tensors tensors() noexcept
{
    fattn_tensors out{};
    out.struct_size = sizeof out;
    return out;
}

/* The problem with every derived field filled in (fattn_problem_resolve). */
inline result<fattn_problem> try_resolve(const fattn_problem &problem)
{
    fattn_problem out{};
    const fattn_status status = fattn_problem_resolve(&problem, &out);
    return status == FATTN_OK ? result<fattn_problem>(out) : result<fattn_problem>(status);
}

/* ---- handles
 * -------------------------------------------------------------------------------------------------------------------
 */

namespace detail
{
struct deleter {
    void operator()(fattn_context *handle) const noexcept
    {
        fattn_context_destroy(handle);
    }
    void operator()(fattn_decision *handle) const noexcept
    {
        fattn_decision_destroy(handle);
    }
    void operator()(fattn_graph *handle) const noexcept
    {
        fattn_graph_destroy(handle);
    }
    void operator()(fattn_plan *handle) const noexcept
    {
        fattn_plan_destroy(handle);
    }
    void operator()(fattn_score_mod *handle) const noexcept
    {
        fattn_score_mod_destroy(handle);
    }
};

template <typename T> class handle
{
  public:
    handle() noexcept = default; /* holds nothing */
    T *get() const noexcept
    {
        return handle_.get();
    }
    T *release() noexcept
    {
        return handle_.release();
    }
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

  protected:
    explicit handle(T *owned) noexcept : handle_(owned)
    {
    }
    std::unique_ptr<T, deleter> handle_;
};

/* A result of a function that makes a handle. */
template <typename H, typename T> result<H> made(fattn_status status, T *handle)
{
    return status == FATTN_OK ? result<H>(H::own(handle)) : result<H>(status);
}
} // namespace detail

/* One cuDNN on one device. */
class context : public detail::handle<fattn_context>
{
  public:
    context() noexcept = default; /* holds nothing */
    static context own(fattn_context *owned) noexcept
    {
        return context(owned);
    }
    static result<context> try_create(const fattn_context_options &options)
    {
        fattn_context *out = nullptr;
        const fattn_status status = fattn_context_create(&out, &options);
        return detail::made<context>(status, out);
    }
#if defined(__cpp_exceptions)
    explicit context(const fattn_context_options &options) : context(try_create(options).value())
    {
    }
#endif
    fattn_context_info info() const noexcept
    {
        fattn_context_info out{};
        out.struct_size = sizeof out;
        fattn_context_info_get(get(), &out);
        return out;
    }

  private:
    explicit context(fattn_context *owned) noexcept : handle(owned)
    {
    }
};

/* A change of the score, for problem.score_mod: get(). Plans keep what they need of it. */
class score_mod : public detail::handle<fattn_score_mod>
{
  public:
    score_mod() noexcept = default; /* holds nothing */
    static score_mod own(fattn_score_mod *owned) noexcept
    {
        return score_mod(owned);
    } /* of fattn_score_mod_softcap, for example */
    /* Calls record(fattn_recorder *, fattn_value score) once. It returns a fattn_value, may
     * capture, and must not throw. */
    template <typename Record> static result<score_mod> try_create(Record &&record)
    {
        fattn_score_mod *out = nullptr;
        const auto callback = [](fattn_recorder *recorder, fattn_value score,
                                 void *user) -> fattn_value {
            return (*static_cast<std::remove_reference_t<Record> *>(user))(recorder, score);
        };
        void *user = const_cast<void *>(static_cast<const void *>(std::addressof(record)));
        const fattn_status status = fattn_score_mod_create(&out, callback, nullptr, user);
        return detail::made<score_mod>(status, out);
    }
#if defined(__cpp_exceptions)
    template <typename Record> static score_mod create(Record &&record)
    {
        return try_create(std::forward<Record>(record)).value();
    }
#endif

  private:
    explicit score_mod(fattn_score_mod *owned) noexcept : handle(owned)
    {
    }
};

/* This policy holds as well, on this thread, until the end of the scope (fattn_policy_push). */
class policy
{
  public:
    policy() noexcept = default; /* changes nothing */
    static result<policy> try_push(const fattn_policy &pushed)
    {
        policy out;
        const fattn_status status = fattn_policy_push(&pushed, &out.depth_);
        return status == FATTN_OK ? result<policy>(std::move(out)) : result<policy>(status);
    }
#if defined(__cpp_exceptions)
    explicit policy(const fattn_policy &pushed) : policy(try_push(pushed).value())
    {
    }
#endif
    policy(policy &&other) noexcept : depth_(std::exchange(other.depth_, 0))
    {
    }
    policy &operator=(policy &&other) noexcept
    {
        std::swap(depth_, other.depth_);
        return *this;
    }
    ~policy()
    {
        fattn_policy_pop(depth_);
    }

  private:
    int depth_ = 0;
};

/* Can this target run the problem, by which engines, and if not, why? Strings and elements live as
 * long as the decision. */
class decision : public detail::handle<fattn_decision>
{
  public:
    decision() noexcept = default; /* holds nothing */
    static decision own(fattn_decision *owned) noexcept
    {
        return decision(owned);
    }
    static result<decision> try_create(const context &context, const fattn_problem &problem,
                                       uint32_t ask = FATTN_ASK_A)
    {
        fattn_decision *out = nullptr;
        fattn_status status = fattn_decide(&out, context.get(), &problem, ask);
        if (status == FATTN_BAD_PROBLEM && out != nullptr)
            status = FATTN_OK; /* the question was answered */
        return detail::made<decision>(status, out);
    }
#if defined(__cpp_exceptions)
    decision(const context &context, const fattn_problem &problem, uint32_t ask = FATTN_ASK_A)
        : decision(try_create(context, problem, ask).value())
    {
    }
#endif
    bool supported() const noexcept
    {
        return fattn_decision_supported(get());
    }
    fattn_backend backend() const noexcept
    {
        return fattn_decision_backend(get());
    }
    fattn_reason reason() const noexcept
    {
        return fattn_decision_reason(get());
    }
    const char *status() const noexcept
    {
        return fattn_decision_status(get());
    }
    const char *text() const noexcept
    {
        return fattn_decision_text(get());
    }
    const char *remedy() const noexcept
    {
        return fattn_decision_remedy(get());
    }
    std::vector<fattn_engine> engines(fattn_mode mode = FATTN_MODE_A) const
    {
        std::vector<fattn_engine> out;
        for (size_t i = 0; const fattn_engine *engine = fattn_decision_engine(get(), mode, i); i++)
            out.push_back(*engine);
        return out;
    }

  private:
    explicit decision(fattn_decision *owned) noexcept : handle(owned)
    {
    }
};

/* Accepted problems near a refused one, nearest first. `budget`: most decisions (0: 200). */
inline result<std::vector<fattn_neighbour>>
try_explain(const context &context, const fattn_problem &problem, int budget = 0)
{
    std::vector<fattn_neighbour> out(FATTN_MAX_NEIGHBOURS);
    size_t count = 0;
    const fattn_status status = fattn_explain(context.get(), &problem, budget, out.data(), &count);
    out.resize(count);
    return status == FATTN_OK ? result<std::vector<fattn_neighbour>>(std::move(out))
                              : result<std::vector<fattn_neighbour>>(status);
}

/* A compiled problem. A plan may outlive its context. */
class plan : public detail::handle<fattn_plan>
{
  public:
    plan() noexcept = default; /* holds nothing */
    static plan own(fattn_plan *owned) noexcept
    {
        return plan(owned);
    }
    static result<plan> try_create(const context &context, const fattn_problem &problem,
                                   const fattn_plan_options *options = nullptr)
    {
        fattn_plan *out = nullptr;
        const fattn_status status = fattn_plan_create(&out, context.get(), &problem, options);
        return detail::made<plan>(status, out);
    }
    /* Shares a plan that the process has already (fattn_plan_get). */
    static result<plan> try_share(const context &context, const fattn_problem &problem,
                                  const fattn_plan_options *options = nullptr)
    {
        fattn_plan *out = nullptr;
        const fattn_status status = fattn_plan_get(&out, context.get(), &problem, options);
        return detail::made<plan>(status, out);
    }
    /* Loads the bytes of save(), for the same problem. A plan is executable code: load only files
     * that you trust. */
    static result<plan> try_load(const context &context, const fattn_problem &problem,
                                 const std::string &bytes)
    {
        fattn_plan *out = nullptr;
        const fattn_status status =
            fattn_plan_load(&out, context.get(), &problem, bytes.data(), bytes.size());
        return detail::made<plan>(status, out);
    }
    result<std::string> try_save() const
    {
        char *bytes = nullptr;
        size_t count = 0;
        const fattn_status status = fattn_plan_save(get(), &bytes, &count);
        if (status != FATTN_OK)
            return result<std::string>(status);
        const std::unique_ptr<char, void (*)(void *)> owned(bytes, fattn_free);
        return result<std::string>(std::string(bytes, count));
    }
    fattn_status try_forward(const fattn_tensors &tensors,
                             CUstream_st *stream = nullptr) const noexcept
    {
        return fattn_forward(get(), &tensors, stream);
    }
    fattn_status try_backward(const fattn_tensors &tensors,
                              CUstream_st *stream = nullptr) const noexcept
    {
        return fattn_backward(get(), &tensors, stream);
    }
#if defined(__cpp_exceptions)
    plan(const context &context, const fattn_problem &problem,
         const fattn_plan_options *options = nullptr)
        : plan(try_create(context, problem, options).value())
    {
    }
    static plan share(const context &context, const fattn_problem &problem,
                      const fattn_plan_options *options = nullptr)
    {
        return try_share(context, problem, options).value();
    }
    static plan load(const context &context, const fattn_problem &problem, const std::string &bytes)
    {
        return try_load(context, problem, bytes).value();
    }
    std::string save() const
    {
        return try_save().value();
    }
    void forward(const fattn_tensors &tensors, CUstream_st *stream = nullptr) const
    {
        check(try_forward(tensors, stream));
    }
    void backward(const fattn_tensors &tensors, CUstream_st *stream = nullptr) const
    {
        check(try_backward(tensors, stream));
    }
#endif
    size_t workspace_bytes() const noexcept
    {
        return fattn_plan_workspace_bytes(get());
    }
    fattn_backend backend() const noexcept
    {
        return fattn_plan_backend(get());
    }
    const fattn_engine &engine() const noexcept
    {
        return *fattn_plan_engine(get());
    }
    double milliseconds() const noexcept
    {
        return fattn_plan_ms(get());
    }
    bool covers(const fattn_problem &problem) const noexcept
    {
        return fattn_plan_covers(get(), &problem);
    }

  private:
    explicit plan(fattn_plan *owned) noexcept : handle(owned)
    {
    }
};

/* ---- memory and streams, for programs without a CUDA runtime (device.h)
 * ---------------------------------------------------------- */

/* Memory of the context's device, not cleared. The context must outlive the buffer. */
class buffer
{
  public:
    buffer() noexcept = default;
    static result<buffer> try_create(const context &context, size_t bytes)
    {
        buffer out;
        out.owner_ = context.get(), out.bytes_ = bytes;
        const fattn_status status = fattn_buffer_create(&out.memory_, context.get(), bytes);
        return status == FATTN_OK ? result<buffer>(std::move(out)) : result<buffer>(status);
    }
#if defined(__cpp_exceptions)
    buffer(const context &context, size_t bytes) : buffer(try_create(context, bytes).value())
    {
    }
    void write(const void *from, size_t bytes) const
    {
        check(fattn_buffer_write(owner_, memory_, from, bytes));
    }
    void read(void *to, size_t bytes) const
    {
        check(fattn_buffer_read(owner_, to, memory_, bytes));
    }
#endif
    buffer(buffer &&other) noexcept
    {
        swap(other);
    }
    buffer &operator=(buffer &&other) noexcept
    {
        buffer(std::move(other)).swap(*this);
        return *this;
    }
    ~buffer()
    {
        if (memory_ != nullptr)
            fattn_buffer_destroy(owner_, memory_);
    }
    void *get() const noexcept
    {
        return memory_;
    }
    size_t size() const noexcept
    {
        return bytes_;
    }

  private:
    void swap(buffer &other) noexcept
    {
        std::swap(owner_, other.owner_);
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
    }
    fattn_context *owner_ = nullptr;
    void *memory_ = nullptr;
    size_t bytes_ = 0;
};

/* A stream of the context's device. The context must outlive the stream. */
class stream
{
  public:
    stream() noexcept = default;
    static result<stream> try_create(const context &context)
    {
        stream out;
        out.owner_ = context.get();
        const fattn_status status = fattn_stream_create(&out.stream_, context.get());
        return status == FATTN_OK ? result<stream>(std::move(out)) : result<stream>(status);
    }
    fattn_status try_synchronize() const noexcept
    {
        return fattn_stream_synchronize(owner_, stream_);
    }
#if defined(__cpp_exceptions)
    explicit stream(const context &context) : stream(try_create(context).value())
    {
    }
    void synchronize() const
    {
        check(try_synchronize());
    }
#endif
    stream(stream &&other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          stream_(std::exchange(other.stream_, nullptr))
    {
    }
    stream &operator=(stream &&other) noexcept
    {
        std::swap(owner_, other.owner_);
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~stream()
    {
        if (owner_ != nullptr)
            fattn_stream_destroy(owner_, stream_);
    }
    CUstream_st *get() const noexcept
    {
        return stream_;
    }

  private:
    fattn_context *owner_ = nullptr;
    CUstream_st *stream_ = nullptr;
};

/* A CUDA graph: calls that are launched together. */
class graph : public detail::handle<fattn_graph>
{
  public:
    graph() noexcept = default; /* holds nothing */
    static graph own(fattn_graph *owned) noexcept
    {
        return graph(owned);
    }
    /* Records the work that enqueue() puts on the stream, without running it. It returns a
     * fattn_status and must not throw. */
    template <typename Enqueue>
    static result<graph> try_capture(const context &context, const stream &stream,
                                     Enqueue &&enqueue)
    {
        fattn_graph *out = nullptr;
        fattn_status status = fattn_capture_begin(context.get(), stream.get());
        if (status != FATTN_OK)
            return result<graph>(status);
        const fattn_status enqueued = enqueue();
        result<graph> refused(
            enqueued); /* keeps its sentence: the end of the capture may have one of its own */
        status = fattn_capture_end(&out, context.get(), stream.get());
        result<graph> captured = detail::made<graph>(status, out);
        return enqueued == FATTN_OK ? std::move(captured) : std::move(refused);
    }
    /* cuDNN's native graph of a plan, with these addresses. */
    static result<graph> try_native(const plan &plan, const fattn_tensors &tensors)
    {
        fattn_graph *out = nullptr;
        const fattn_status status = fattn_graph_native(&out, plan.get(), &tensors);
        return detail::made<graph>(status, out);
    }
    fattn_status try_launch(CUstream_st *stream = nullptr) const noexcept
    {
        return fattn_graph_launch(get(), stream);
    }
#if defined(__cpp_exceptions)
    template <typename Enqueue>
    static graph capture(const context &context, const stream &stream, Enqueue &&enqueue)
    {
        return try_capture(context, stream, std::forward<Enqueue>(enqueue)).value();
    }
    static graph native(const plan &plan, const fattn_tensors &tensors)
    {
        return try_native(plan, tensors).value();
    }
    void launch(CUstream_st *stream = nullptr) const
    {
        check(try_launch(stream));
    }
#endif
    size_t node_count() const noexcept
    {
        return fattn_graph_node_count(get());
    }

  private:
    explicit graph(fattn_graph *owned) noexcept : handle(owned)
    {
    }
};

} // namespace fattn

#endif
