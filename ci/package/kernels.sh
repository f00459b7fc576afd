# shellcheck shell=bash
# The kernels of the math backend: which nvcc compiles them, and for which architectures. ./facts and all that make packages ask here.
# Sourced; needs $home.

package_archs="80;86;89;90;100;120"

# nvcc compiles the kernels of the math backend: the toolkit's where there is one of 12.8 or newer, otherwise NVIDIA's packages in the cache.
cached_nvcc() {
    local cache=${HOME:-/nowhere}/.cache
    [[ ${XDG_CACHE_HOME:-} != /* ]] || cache=$XDG_CACHE_HOME
    echo "$cache/facts/nvcc/$(sed -n 's/^nvidia-cuda-nvcc \([^ ]*\) .*/\1/p' "$home/ci/cudnn.lock")/bin/nvcc"
}

toolkit_nvcc() {
    local nvcc major minor
    for nvcc in "${CUDA_HOME:-/nowhere}/bin/nvcc" "$(type -P nvcc || true)" /usr/local/cuda/bin/nvcc; do
        [[ -x $nvcc ]] || continue
        IFS=. read -r major minor _ < <("$nvcc" --version 2>/dev/null | sed -n 's/.* V\([0-9.]*\).*/\1/p') || continue
        ((major > 12 || major == 12 && minor >= 8)) && echo "$nvcc" && return
    done
    return 1
}

find_nvcc() { toolkit_nvcc || cached_nvcc; }

# kernel_options ARCHS: the options of CMake.
kernel_options() { printf '%s\n' "-DFACTS_NVCC=$(find_nvcc)" "-DFACTS_CUDA_ARCHS=$1"; }

# all_kernels BUILD: has this build the kernels of a package?
all_kernels() {
    local have wanted="sm_${package_archs//;/ sm_} compute_${package_archs%%;*}"
    have=$(sed -n 's/.*, "nvcc [^:]*: \(.*\)" };$/\1/p' "$1/lib/math_image.c" 2>/dev/null) || true
    [[ $have != "$wanted" ]] || return 0
    echo "the build has kernels for ${have:-no GPU}; a package needs $wanted. Run ./facts setup once, which fetches nvcc, or give --no-kernels" >&2
    return 3
}
