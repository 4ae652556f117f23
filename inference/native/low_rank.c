/* What a LoRA adapter adds to a layer's outputs (Hu et al. 2021): out += B (A x), for some rows.

   Sums are of float32 and in the same order for any number of rows, so a row is the same in any batch.
   Two thin products of few rows read more than they compute: weights are read once for ROWS of them, and
   what lies between the products never leaves the cache. One caller at a time: scratch memory is shared. */
#include "scratch.h"
#include "simd.h"

enum { ROWS = 4, RANKS = 4, WIDTH = 32 };

typedef struct {
    const void *weight; /* outputs / WIDTH, rank, WIDTH: B, padded by 0 */
    int64_t first_rank, rank, first_output, num_outputs;
} Up;

typedef struct {
    const void *down; /* ranks of all ups, inputs: their A */
    const Up *ups;
    int64_t num_inputs, num_ranks, num_ups;
    int type; /* of the weights */
} LowRank;

static inline int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }

/* rows: (num_rows, padded) -> thin: (num_rows, ranks of low), the columns from `rank` on. */
static inline __attribute__((always_inline)) void reduce(const LowRank *low, const float *rows,
                                                         int64_t padded, int64_t num_rows, int64_t rank,
                                                         int64_t num_ranks, float *thin) {
    __m512 sums[ROWS][RANKS], weights[RANKS];
    for (int64_t i = 0; i < num_rows; i++)
        for (int64_t j = 0; j < num_ranks; j++) sums[i][j] = _mm512_setzero_ps();
    for (int64_t at = 0; at < low->num_inputs; at += 16) {
        __mmask16 mask = first(low->num_inputs - at);
        for (int64_t j = 0; j < num_ranks; j++)
            weights[j] = load16(low->down, (rank + j) * low->num_inputs + at, low->type, mask);
        for (int64_t i = 0; i < num_rows; i++) {
            __m512 values = _mm512_loadu_ps(rows + i * padded + at);
            for (int64_t j = 0; j < num_ranks; j++) sums[i][j] = _mm512_fmadd_ps(values, weights[j], sums[i][j]);
        }
    }
    for (int64_t i = 0; i < num_rows; i++)
        for (int64_t j = 0; j < num_ranks; j++)
            thin[i * low->num_ranks + rank + j] = _mm512_reduce_add_ps(sums[i][j]);
}

/* Add to WIDTH outputs of some rows; thin: (num_rows, ranks of low). */
static inline __attribute__((always_inline)) void expand(const LowRank *low, const Up *up, int64_t block,
                                                         const float *thin, int64_t num_rows, char *out,
                                                         int64_t row_bytes, int out_type) {
    int64_t left = up->num_outputs - block * WIDTH, at = up->first_output + block * WIDTH;
    __mmask16 masks[2] = {first(left), first(left - 16)};
    __m512 sums[ROWS][2];
    for (int64_t i = 0; i < num_rows; i++)
        for (int64_t half = 0; half < 2; half++)
            sums[i][half] = load16(out + i * row_bytes, at + 16 * half, out_type, masks[half]);
    for (int64_t k = 0; k < up->rank; k++) {
        int64_t from = (block * up->rank + k) * WIDTH;
        __m512 low_half = load16(up->weight, from, low->type, 0xffff);
        __m512 high_half = load16(up->weight, from + 16, low->type, 0xffff);
        for (int64_t i = 0; i < num_rows; i++) {
            __m512 value = _mm512_set1_ps(thin[i * low->num_ranks + up->first_rank + k]);
            sums[i][0] = _mm512_fmadd_ps(low_half, value, sums[i][0]);
            sums[i][1] = _mm512_fmadd_ps(high_half, value, sums[i][1]);
        }
    }
    for (int64_t i = 0; i < num_rows; i++)
        for (int64_t half = 0; half < 2; half++)
            store16(out + i * row_bytes, at + 16 * half, out_type, masks[half], sums[i][half]);
}

/* rows: (num_rows, inputs) with row_bytes between them, out likewise; which ups add to, and no more. */
void add_low_rank(const LowRank *low, const char *rows, int64_t num_rows, int64_t row_bytes, int type,
                  char *out, int64_t out_row_bytes, int out_type, int num_threads) {
    int64_t padded = (low->num_inputs + 15) / 16 * 16;
    float *exact = room(num_rows * (padded + low->num_ranks) * sizeof(float)), *thin = exact + num_rows * padded;
#pragma omp parallel num_threads(num_threads) if (num_threads > 1)
    {
#pragma omp for schedule(static)
        for (int64_t row = 0; row < num_rows; row++)
            for (int64_t at = 0; at < padded; at += 16) {
                __m512 values = load16(rows + row * row_bytes, at, type, first(low->num_inputs - at));
                _mm512_storeu_ps(exact + row * padded + at, values);
            }
#pragma omp for schedule(static)
        for (int64_t rank = 0; rank < low->num_ranks; rank += RANKS)
            for (int64_t row = 0; row < num_rows; row += ROWS) {
                int64_t height = least(ROWS, num_rows - row), width = least(RANKS, low->num_ranks - rank);
                const float *from = exact + row * padded;
                float *to = thin + row * low->num_ranks;
                if (height == ROWS && width == RANKS) reduce(low, from, padded, ROWS, rank, RANKS, to);
                else if (height == 1 && width == RANKS) reduce(low, from, padded, 1, rank, RANKS, to);
                else reduce(low, from, padded, height, rank, width, to);
            }
        for (int64_t number = 0; number < low->num_ups; number++) {
            const Up *up = low->ups + number;
            int64_t num_blocks = (up->num_outputs + WIDTH - 1) / WIDTH;
#pragma omp for schedule(static)
            for (int64_t block = 0; block < num_blocks; block++)
                for (int64_t row = 0; row < num_rows; row += ROWS) {
                    int64_t height = least(ROWS, num_rows - row);
                    const float *from = thin + row * low->num_ranks;
                    char *to = out + row * out_row_bytes;
                    if (height == ROWS) expand(low, up, block, from, ROWS, to, out_row_bytes, out_type);
                    else if (height == 1) expand(low, up, block, from, 1, to, out_row_bytes, out_type);
                    else expand(low, up, block, from, height, to, out_row_bytes, out_type);
                }
        }
    }
}
