/* A target: one build on one device. Plain values, made from --cudnn and --device before anything
 * runs. */
#ifndef FACTS_TARGET_H
#define FACTS_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "builds/builds.h"
#include "builds/described_device.h"

typedef enum facts_target_kind {
    FACTS_TARGET_GPU,
    FACTS_TARGET_DESCRIBED,
    FACTS_TARGET_CPU
} facts_target_kind;

typedef struct facts_target {
    facts_target_kind kind;
    facts_build build; /* name "none" for the cpu, which needs no build */
    int ordinal;       /* of a GPU; of several the first */
    int gpus;          /* how many it has, of one kind; 0: it is none */
    char device[96];   /* the name in records. A GPU is "gpu0" until its worker has reported its
                          product; several are "gpus" */
    facts_described_device described; /* of a described device */
    /* facts_target_identify; "" until then. The first is of everything, the others of a part. */
    char content[17], libraries_hash[17], description_hash[17];
} facts_target;

typedef struct facts_targets {
    facts_target *at; /* owned */
    size_t count;
} facts_targets;

/* builds x devices; `flags` are those of facts_builds_resolve; `devices` is a comma list of GPU
 * numbers, all (the GPUs of this machine as one target), cpu, names of descriptions and JSON files.
 * The cpu is one target, whatever the builds. `notes` gets what was chosen among several ("" when
 * nothing was). Returns 0; 2 or 3 with a line in *message. */
int facts_targets_resolve(facts_targets *out, const char *cudnn, unsigned flags,
                          const char *devices, facts_error *note, facts_error *message);
/* One word of --device, without a build. Returns 0; 2 or 3 with a line in *message. */
int facts_target_device(facts_target *out, const char *word, facts_error *message);
/* One more. */
void facts_targets_add(facts_targets *targets, const facts_target *target);
/* The one that a record knows by this build and device; as many as there are: none. */
size_t facts_targets_find(const facts_targets *targets, const char *build, const char *device);
/* The backend that is asked first; a row whose worker died before its answer has it. */
const char *facts_target_backend(const facts_target *target);
/* How many of a kind. */
size_t facts_targets_of(const facts_targets *targets, facts_target_kind kind);
void facts_targets_free(facts_targets *targets);

/* "gpu0", or "gpus" for several: the name until its worker has reported its product. */
void facts_target_planned(char out[16], const facts_target *target);
/* How many GPUs this machine shows (device files; nothing is loaded). */
int facts_gpus_here(void);
/* For people: "sm100-spec (B200)"; the device's name alone where it names a product. */
const char *facts_target_shown(char out[176], const facts_target *target);
/* What a GPU is called in records: "NVIDIA H100 80GB HBM3" is h100-80gb-hbm3. */
void facts_device_label(char *out, size_t capacity, const char *device_name);

#endif
