/* Drawing a token: what torch makes of sorts and logarithms of a whole vocabulary, in one pass over a row. */
#include "draw.h"
#include "simd.h"
#include <math.h>

enum { WAITING = 12288 }; /* the most candidates that wait to be weighed against each other, beside the best */

static inline float most_of(const float *row, int64_t width) {
    __m512 most = _mm512_set1_ps(-INFINITY);
    for (int64_t at = 0; at < width; at += 16)
        most = _mm512_max_ps(most, _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), first(width - at), row + at));
    return _mm512_reduce_max_ps(most);
}

/* The logarithm of the sum of exp of each row; not a number where there is one that is none. */
void log_totals(const float *rows, int64_t num_rows, int64_t width, float *totals, int num_threads) {
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 1)
    for (int64_t row = 0; row < num_rows; row++) {
        const float *from = rows + row * width;
        float most = most_of(from, width);
        __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        for (int64_t at = 0; at < width; at += 16) {
            __m512 part = _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), first(width - at), from + at);
            sums[at >> 4 & 1] = _mm512_add_ps(sums[at >> 4 & 1], exp16(_mm512_sub_ps(part, _mm512_set1_ps(most))));
        }
        float total = _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
        totals[row] = isinf(most) ? most : most + logf(total);
    }
}

/* Hoare 1961: the `num` largest of `count` values come to the front, with their places. */
static void select_largest(float *values, int32_t *places, int64_t count, int64_t num) {
    for (int64_t low = 0, high = count - 1; low < high;) {
        float pivot = values[(low + high) / 2];
        int64_t left = low, right = high;
        while (left <= right) {
            while (values[left] > pivot) left++;
            while (values[right] < pivot) right--;
            if (left > right) break;
            float value = values[left];
            int32_t place = places[left];
            values[left] = values[right], places[left++] = places[right];
            values[right] = value, places[right--] = place;
        }
        if (num <= right) high = right;
        else if (num > left) low = left;
        else return;
    }
}

static float least_of(const float *values, int64_t count) {
    float least = INFINITY;
    for (int64_t at = 0; at < count; at++) least = values[at] < least ? values[at] : least;
    return least;
}

/* The `num` largest of each row, at most 4096 and no more than there are, in no order, and their places.
   Which of those that equal the last one are in is left open, and so is what comes of what is no number. */
void candidates(const float *rows, int64_t num_rows, int64_t width, int64_t num, float *values, int64_t *places,
                int num_threads) {
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 1)
    for (int64_t row = 0; row < num_rows; row++) {
        const float *from = rows + row * width;
        float best[WAITING + 16];
        int32_t where[WAITING + 16];
        __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        __m512 least = _mm512_set1_ps(-INFINITY);
        int64_t count = 0, waiting = num < 512 ? 2048 : WAITING;
        for (int64_t at = 0; at < width; at += 16) {
            __mmask16 mask = first(width - at);
            __m512 part = _mm512_maskz_loadu_ps(mask, from + at);
            /* As long as there are too few, one that is minus infinity is as good as any. */
            mask = count < num ? mask : _mm512_mask_cmp_ps_mask(mask, part, least, _CMP_GT_OQ);
            if (!mask) continue;
            /* Not straight into memory, which is microcode on Zen 4. */
            __m512i place = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)at));
            _mm512_storeu_ps(best + count, _mm512_maskz_compress_ps(mask, part));
            _mm512_storeu_si512(where + count, _mm512_maskz_compress_epi32(mask, place));
            count += __builtin_popcount(mask);
            if (count < waiting && at + 16 < width) continue;
            select_largest(best, where, count, num);
            count = count < num ? count : num;
            least = _mm512_set1_ps(least_of(best, count));
        }
        if (count > num) select_largest(best, where, count, num);
        for (int64_t at = 0; at < num; at++) values[row * num + at] = best[at], places[row * num + at] = where[at];
    }
}

/* murmur3's 32-bit finalizer */
static inline uint32_t mix(uint32_t h) {
    h = (h ^ h >> 16) * 0x85EBCA6B;
    h = (h ^ h >> 13) * 0xC2B2AE35;
    return h ^ h >> 16;
}

static inline __m512i mix16(__m512i h) {
    h = _mm512_mullo_epi32(_mm512_xor_si512(h, _mm512_srli_epi32(h, 16)), _mm512_set1_epi32((int)0x85EBCA6B));
    h = _mm512_mullo_epi32(_mm512_xor_si512(h, _mm512_srli_epi32(h, 13)), _mm512_set1_epi32((int)0xC2B2AE35));
    return _mm512_xor_si512(h, _mm512_srli_epi32(h, 16));
}

/* As `gumbel_noise` of sampler.py has it for one id. */
static inline float noise_of(uint32_t bits) { return -(float)log(-log((bits + 0.5) / 4294967296.0)); }

/* No less than the noise of these bits: with v = 1 - u it is -log(-log(1 - v)) <= -log(v), and a float's own
   bits, read as a whole number, are a logarithm that is never too large (Mitchell 1962). */
static inline __m512 most_noise(__m512i bits) {
    __m512 v = _mm512_cvtepu32_ps(_mm512_xor_si512(bits, _mm512_set1_epi32(-1)));
    v = _mm512_add_ps(v, _mm512_set1_ps(0.5f));
    __m512 log2_v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_castps_si512(v)), _mm512_set1_ps(1.0f / (1 << 23)));
    log2_v = _mm512_sub_ps(log2_v, _mm512_set1_ps(127 + 32));
    return _mm512_mul_ps(log2_v, _mm512_set1_ps(-0.6931472f));
}

/* The id of the largest sum of value and noise of each row: a draw from its softmax. Few ids are worth their
   two logarithms; what cannot be more than the best so far is told by `most_noise`. Of equal sums the likelier
   token is drawn. 0 where none is finite. */
void draw_among_all(const float *rows, int64_t num_rows, int64_t width, const int64_t *seeds,
                    const int64_t *positions, int64_t *ids, int num_threads) {
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 1)
    for (int64_t row = 0; row < num_rows; row++) {
        const float *from = rows + row * width;
        uint64_t seed = (uint64_t)seeds[row];
        uint32_t key = mix(mix((uint32_t)seed) ^ mix((uint32_t)(seed >> 32) ^ 0x9E3779B9) ^
                           mix((uint32_t)positions[row] * 0x85EBCA6B));
        __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        float best = -INFINITY;
        ids[row] = 0;
        for (int64_t at = 0; at < width; at += 16) {
            __mmask16 mask = first(width - at);
            __m512 part = _mm512_maskz_loadu_ps(mask, from + at);
            __m512i id = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)at));
            id = _mm512_add_epi32(_mm512_mullo_epi32(id, _mm512_set1_epi32((int)0xC2B2AE35)), _mm512_set1_epi32(1));
            __m512i bits = mix16(_mm512_xor_si512(_mm512_set1_epi32((int)key), mix16(id)));
            /* Sums are rounded to floats, by some millionths of what they are. */
            __m512 slack = _mm512_fmadd_ps(_mm512_abs_ps(part), _mm512_set1_ps(1e-6f), _mm512_set1_ps(1e-3f));
            __m512 most = _mm512_add_ps(_mm512_add_ps(part, most_noise(bits)), slack);
            mask = _mm512_mask_cmp_ps_mask(mask, most, _mm512_set1_ps(best), _CMP_GT_OQ);
            if (!mask) continue;
            uint32_t each[16];
            _mm512_storeu_si512(each, bits);
            for (; mask; mask &= mask - 1) {
                int lane = __builtin_ctz(mask);
                float sum = from[at + lane] + noise_of(each[lane]);
                int is_likelier = sum == best && from[at + lane] > from[ids[row]];
                if (sum > best || is_likelier) best = sum, ids[row] = at + lane;
            }
        }
    }
}
