/* Linear layers in 8 and in 4 bits: see linear.c. */
#pragma once
#include <stdint.h>

typedef struct {
    const int8_t *tiles;   /* outputs / 16, inputs / 64, 16 groups of inputs, 16 outputs, 4 inputs; in 4
                              bits 8 groups: below the first 32 inputs + HALF, above the other 32 */
    const uint8_t *factors; /* in 4 bits: outputs / 16, inputs / 32, 16 outputs; else NULL */
    const float *scales;   /* one per output, padded to 16, as what follows */
    const int32_t *shifts; /* ZERO times the sum of an output's weights */
    const float *bias;     /* may be NULL */
    int64_t num_outputs, num_inputs, padded_inputs;
} Weight;

/* rows: (num_rows, inputs), each row_bytes behind the last -> out: (num_rows, outputs). */
void linear(const Weight *w, const void *rows, int64_t num_rows, int64_t row_bytes, int type,
            void *out, int out_type, int num_threads);
