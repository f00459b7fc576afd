/* cuDNN and the CUDA runtime for a program that facts repro --standalone wrote, in one file linked
 * into it: memory is the host's, every graph is accepted, and "executing" copies the files
 * FAKE_ANSWERS/UID.bin to where the variant pack says. So the program's own arithmetic, its
 * comparison and its memory are tested without a GPU. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512 };
static int64_t uids[MOST];
static void *addresses[MOST];
static int64_t count;

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    snprintf(message, size, "the fake refuses");
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = (cudnnHandle_t)1;
    return CUDNN_STATUS_SUCCESS;
}

/* What succeeds and does nothing else. */
#define SUCCEED(result, name, arguments)                                                           \
    result name arguments                                                                          \
    {                                                                                              \
        return (result)0;                                                                          \
    }
SUCCEED(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream))
SUCCEED(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t d))
SUCCEED(cudaError_t, cudaDeviceSynchronize, (void))
SUCCEED(cudaError_t, cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode))
SUCCEED(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream))

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    (void)type;
    *out = (cudnnBackendDescriptor_t)1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n,
                                       const void *values)
{
    (void)d, (void)type;
    if (n > MOST)
        return CUDNN_STATUS_BAD_PARAM;
    if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
        memcpy(uids, values, (size_t)n * sizeof *uids);
    if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
        memcpy(addresses, values, (size_t)(count = n) * sizeof *addresses);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t capacity,
                                       int64_t *n, void *values)
{
    (void)d, (void)type, (void)capacity;
    *n = 1;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
        *(int64_t *)values = 64;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    (void)handle, (void)plan, (void)pack;
    for (int64_t i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%lld.bin", getenv("FAKE_ANSWERS"), (long long)uids[i]);
        FILE *file = fopen(path, "rb");
        for (int byte, at = 0; file && (byte = fgetc(file)) != EOF; at++)
            ((unsigned char *)addresses[i])[at] = (unsigned char)byte;
        if (file)
            fclose(file);
    }
    return CUDNN_STATUS_SUCCESS;
}

const char *cudaGetErrorString(cudaError_t status)
{
    (void)status;
    return "the fake has no device";
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = calloc(1, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    memset(at, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    (void)device;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "no GPU");
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    *out = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    (void)stream;
    *out = NULL;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags)
{
    (void)graph, (void)flags;
    *out = NULL;
    return cudaSuccess;
}
