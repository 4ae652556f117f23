/* Drawing a token: see draw.c. Rows are float32 and lie behind each other. */
#pragma once
#include <stdint.h>

void log_totals(const float *rows, int64_t num_rows, int64_t width, float *totals, int num_threads);
void candidates(const float *rows, int64_t num_rows, int64_t width, int64_t num, float *values, int64_t *places,
                int num_threads);
void draw_among_all(const float *rows, int64_t num_rows, int64_t width, const int64_t *seeds,
                    const int64_t *positions, int64_t *ids, int num_threads);
