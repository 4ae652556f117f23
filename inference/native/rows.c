/* Small operations that torch makes of many passes: here each reads a row once or twice. */
#include "rows.h"
#include "simd.h"
#include <math.h>

static inline char *row_of(void *base, int64_t row, int64_t width, int type) {
    return (char *)base + row * width * bytes_of(type);
}

static inline __m512 rounded(__m512 values, int type) {
    if (type == FLOAT32) return values;
    __m512i halves = _mm512_cvtepu16_epi32(to_bfloat16(values));
    return _mm512_castsi512_ps(_mm512_slli_epi32(halves, 16));
}

/* Zhang and Sennrich 2019: x / sqrt(mean of squares + epsilon), rounded as transformers does, times weight. */
void rms_norm(const void *rows, const void *weight, void *out, int64_t num_rows, int64_t width,
              float epsilon, int type, int num_threads) {
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 15)
    for (int64_t row = 0; row < num_rows; row++) {
        const char *from = row_of((void *)rows, row, width, type);
        char *to = row_of(out, row, width, type);
        __m512 squares = _mm512_setzero_ps();
        for (int64_t at = 0; at < width; at += 16) {
            __m512 values = load16(from, at, type, first(width - at));
            squares = _mm512_fmadd_ps(values, values, squares);
        }
        __m512 factor = _mm512_set1_ps(1 / sqrtf(_mm512_reduce_add_ps(squares) / width + epsilon));
        for (int64_t at = 0; at < width; at += 16) {
            __mmask16 mask = first(width - at);
            __m512 values = rounded(_mm512_mul_ps(load16(from, at, type, mask), factor), type);
            store16(to, at, type, mask, _mm512_mul_ps(values, load16(weight, at, type, mask)));
        }
    }
}

/* rows: (num_rows, 2 * width), gates in front -> out: (num_rows, width), silu(gate) * up. */
void silu_mul(const void *rows, void *out, int64_t num_rows, int64_t width, int type, int num_threads) {
    __m512 one = _mm512_set1_ps(1);
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 7)
    for (int64_t row = 0; row < num_rows; row++) {
        const char *from = row_of((void *)rows, row, 2 * width, type);
        char *to = row_of(out, row, width, type);
        for (int64_t at = 0; at < width; at += 16) {
            __mmask16 mask = first(width - at);
            __m512 gate = load16(from, at, type, mask), up = load16(from, width + at, type, mask);
            __m512 size = _mm512_abs_ps(gate); /* of e to the -|x|, so that nothing overflows */
            __m512 small = exp16(_mm512_sub_ps(_mm512_setzero_ps(), size));
            __mmask16 is_negative = _mm512_cmp_ps_mask(gate, _mm512_setzero_ps(), _CMP_LT_OQ);
            __m512 top = _mm512_mask_mov_ps(one, is_negative, small);
            __m512 silu = _mm512_mul_ps(gate, _mm512_div_ps(top, _mm512_add_ps(one, small)));
            store16(to, at, type, mask, _mm512_mul_ps(silu, up));
        }
    }
}

/* Su et al. 2021 as transformers pairs it: x[i] and x[i + width / 2] turn by one angle.
   rows: (heads, tokens, width) by strides -> out: (tokens, heads, width); cosines, sines: (tokens, width). */
void rotate(const void *rows, int64_t head_stride, int64_t token_stride, const void *cosines,
            const void *sines, void *out, int64_t num_heads, int64_t num_tokens, int64_t width, int type,
            int num_threads) {
    int64_t half = width / 2;
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_tokens > 7)
    for (int64_t token = 0; token < num_tokens; token++)
        for (int64_t head = 0; head < num_heads; head++) {
            int64_t from = head * head_stride + token * token_stride, angle = token * width;
            int64_t to = (token * num_heads + head) * width;
            for (int64_t at = 0; at < half; at += 16) {
                __mmask16 mask = first(half - at);
                __m512 low = load16(rows, from + at, type, mask);
                __m512 high = load16(rows, from + half + at, type, mask);
                __m512 cosine = load16(cosines, angle + at, type, mask);
                __m512 sine = load16(sines, angle + at, type, mask);
                __m512 turned = _mm512_mul_ps(low, cosine);
                store16(out, to + at, type, mask, _mm512_fnmadd_ps(high, sine, turned));
                cosine = load16(cosines, angle + half + at, type, mask);
                sine = load16(sines, angle + half + at, type, mask);
                turned = _mm512_mul_ps(high, cosine);
                store16(out, to + half + at, type, mask, _mm512_fmadd_ps(low, sine, turned));
            }
        }
}

/* The largest of each row, the first of equals; not a number where there is one that is none. */
void largest(const float *rows, int64_t num_rows, int64_t width, int64_t row_stride, float *values,
             int64_t *places, int num_threads) {
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 1)
    for (int64_t row = 0; row < num_rows; row++) {
        const float *from = rows + row * row_stride;
        __m512 most = _mm512_set1_ps(-INFINITY);
        __m512i place = _mm512_setzero_si512();
        __mmask16 is_broken = 0;
        for (int64_t at = 0; at < width; at += 16) {
            __mmask16 mask = first(width - at);
            __m512 part = _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), mask, from + at);
            is_broken |= _mm512_cmp_ps_mask(part, part, _CMP_UNORD_Q);
            __mmask16 is_more = _mm512_cmp_ps_mask(part, most, _CMP_GT_OQ);
            most = _mm512_mask_mov_ps(most, is_more, part);
            place = _mm512_mask_mov_epi32(place, is_more, _mm512_set1_epi32((int)at));
        }
        place = _mm512_add_epi32(place, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        float best = _mm512_reduce_max_ps(most);
        __mmask16 is_best = _mm512_cmp_ps_mask(most, _mm512_set1_ps(best), _CMP_EQ_OQ);
        places[row] = _mm512_mask_reduce_min_epi32(is_best, place);
        values[row] = is_broken ? NAN : best;
    }
}
