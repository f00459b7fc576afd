/* For a program on cuDNN's backend API, on a machine without a GPU: linked before cuDNN it lets the
 * program plan for a described device.
 *
 * cudnnCreate succeeds; the device's description (the text of the file DESCRIBED_DEVICE) stands in
 * for the handle in graphs, heuristics, engines and plans. When the first plan is finalized its
 * text goes to the file DESCRIBED_PLAN, and the process ends: 0, or 1 with a line where cuDNN
 * refused. Everything else is cuDNN's own. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef cudnnBackendDescriptor_t desc;

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "described_cudnn: no %s\n", name);
        exit(3);
    }
    return found;
}

static char *read_file(const char *path, long *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0 && (*bytes = ftell(file)) > 0 &&
        (text = calloc(1, (size_t)*bytes + 1))) {
        rewind(file);
        if (fread(text, 1, (size_t)*bytes, file) != (size_t)*bytes)
            text = NULL;
    }
    return text;
}

static desc description(void)
{
    static desc made;
    cudnnStatus_t (*create)(cudnnBackendDescriptorType_t, desc *) =
        next("cudnnBackendCreateDescriptor");
    cudnnStatus_t (*set)(desc, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                         const void *) = next("cudnnBackendSetAttribute");
    cudnnStatus_t (*finalize)(desc) = next("cudnnBackendFinalize");
    long bytes = 0;
    if (made)
        return made;
    char *text = read_file(getenv("DESCRIBED_DEVICE"), &bytes);
    if (!text || create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &made) ||
        set(made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes, text) ||
        finalize(made)) {
        fprintf(stderr, "described_cudnn: cuDNN does not take the description\n");
        exit(3);
    }
    return made;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = (cudnnHandle_t)1; /* never looked at: it is left out below */
    return CUDNN_STATUS_SUCCESS;
}

enum { MOST = 64 };
static desc plans[MOST];
static int plan_count;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, desc *out)
{
    cudnnStatus_t (*create)(cudnnBackendDescriptorType_t, desc *) =
        next("cudnnBackendCreateDescriptor");
    cudnnStatus_t (*set)(desc, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                         const void *) = next("cudnnBackendSetAttribute");
    const desc device = description();
    cudnnStatus_t status = create(type, out);
    const int name = type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR
                         ? (int)CUDNN_ATTR_ENGINEHEUR_DEVICEPROP
                     : type == CUDNN_BACKEND_ENGINE_DESCRIPTOR ? (int)CUDNN_ATTR_ENGINE_DEVICEPROP
                     : type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
                         ? (int)CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP
                         : -1;
    if (status == CUDNN_STATUS_SUCCESS && name >= 0)
        status =
            set(*out, (cudnnBackendAttributeName_t)name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && plan_count < MOST)
        plans[plan_count++] = *out;
    return status;
}

cudnnStatus_t cudnnBackendSetAttribute(desc d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    cudnnStatus_t (*set)(desc, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                         const void *) = next("cudnnBackendSetAttribute");
    return type == CUDNN_TYPE_HANDLE ? CUDNN_STATUS_SUCCESS : set(d, name, type, count, values);
}

static void write_plan(desc plan)
{
    cudnnStatus_t (*get)(desc, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                         int64_t *, void *) = next("cudnnBackendGetAttribute");
    int64_t bytes = 0, got = 0;
    get(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &bytes, NULL);
    char *text = calloc(1, (size_t)bytes + 1);
    FILE *file = fopen(getenv("DESCRIBED_PLAN"), "wb");
    if (!text || !file || bytes <= 0 ||
        get(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes, &got,
            text)) {
        fprintf(stderr, "described_cudnn: the plan does not tell its text\n");
        _exit(3);
    }
    fwrite(text, 1, (size_t)got, file);
    fclose(file);
    _exit(0);
}

cudnnStatus_t cudnnBackendFinalize(desc d)
{
    cudnnStatus_t (*finalize)(desc) = next("cudnnBackendFinalize");
    const cudnnStatus_t status = finalize(d);
    for (int i = 0; i < plan_count && status == CUDNN_STATUS_SUCCESS; i++)
        if (plans[i] == d)
            write_plan(d);
    return status;
}

/* What the program would call after its plan. */
#define AFTER(result, name, arguments)                                                             \
    result name arguments                                                                          \
    {                                                                                              \
        fprintf(stderr, "described_cudnn: %s is not reached\n", #name);                            \
        _exit(3);                                                                                  \
    }
AFTER(const char *, cudaGetErrorString, (cudaError_t status))
AFTER(cudaError_t, cudaMalloc, (void **out, size_t bytes))
AFTER(cudaError_t, cudaMemset, (void *at, int value, size_t bytes))
AFTER(cudaError_t, cudaMemcpy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind))
AFTER(cudaError_t, cudaDeviceSynchronize, (void))
AFTER(cudaError_t, cudaGetDeviceProperties, (struct cudaDeviceProp * out, int device))
AFTER(cudaError_t, cudaStreamCreate, (cudaStream_t * out))
AFTER(cudaError_t, cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode))
AFTER(cudaError_t, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *out))
AFTER(cudaError_t, cudaGraphInstantiateWithFlags,
      (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags))
AFTER(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream))
