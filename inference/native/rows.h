/* Small operations on rows: see rows.c. */
#pragma once
#include <stdint.h>

void rms_norm(const void *rows, const void *weight, void *out, int64_t num_rows, int64_t width,
              float epsilon, int type, int num_threads);
void silu_mul(const void *rows, void *out, int64_t num_rows, int64_t width, int type, int num_threads);
void rotate(const void *rows, int64_t head_stride, int64_t token_stride, const void *cosines,
            const void *sines, void *out, int64_t num_heads, int64_t num_tokens, int64_t width, int type,
            int num_threads);
