/* Attention of the newest tokens over slabs of keys and values, for all sequences of a step at once.

   A block of keys at a time with a running maximum and sum (Milakov and Gimelshein 2018, "Online
   normalizer calculation for softmax"; Dao et al. 2022, FlashAttention), in float32. The query heads that
   share a key head go through it four at a time, so that a key is read once for four of them. */
#include "simd.h"
#include <string.h>

enum { BLOCK = 128, HEADS = 4, MOST_DIM = 512 };

typedef struct {
    void *keys, *values; /* kv_heads, room, dim; `room` may differ between sequences */
    int64_t room;
    int64_t start;   /* tokens that are there already */
    int64_t num_new; /* tokens of this step */
    int64_t packed;  /* where these begin among all tokens of the step */
} Span;

typedef struct { /* strides are in values */
    const void *query, *key, *value; /* heads or kv_heads, tokens, dim or value_dim */
    void *out;                       /* tokens, heads, value_dim */
    int64_t query_head, query_token, key_head, key_token, value_head, value_token;
    int64_t num_heads, num_kv_heads, dim, value_dim;
    int64_t window; /* how many tokens are seen, the newest included; 0 for all */
    float scale;
    int type;
} Attention;

static inline const void *at(const void *base, int64_t offset, int type) {
    return (const char *)base + offset * bytes_of(type);
}

/* The sums of four vectors, side by side. */
static inline __m128 sums_of(__m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    __m512d high = _mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    __m512 all = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* scores: (keys, HEADS) */
static inline __attribute__((always_inline)) void rate(
    const float (*query)[MOST_DIM], const void *keys, int64_t count, int64_t dim, int type, float *scores) {
    for (int64_t key = 0; key < count; key++) {
        __m512 sums[HEADS] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        for (int64_t d = 0; d < dim; d += 16) {
            __m512 part = load16(keys, key * dim + d, type, 0xffff);
            for (int h = 0; h < HEADS; h++)
                sums[h] = _mm512_fmadd_ps(part, _mm512_load_ps(query[h] + d), sums[h]);
        }
        _mm_store_ps(scores + key * HEADS, sums_of(sums[0], sums[1], sums[2], sums[3]));
    }
}

/* Scores become their share before division, and the running maximum and sum go on; returns the factor
   for what was summed up to a smaller maximum. */
static inline __m128 weigh(float *scores, int64_t count, __m128 *most, __m128 *total) {
    int64_t padded = (count + 3) / 4 * 4;
    for (int64_t i = count * HEADS; i < padded * HEADS; i++) scores[i] = -__builtin_inff();
    __m512 high = _mm512_broadcast_f32x4(*most);
    for (int64_t i = 0; i < padded * HEADS; i += 16) high = _mm512_max_ps(high, _mm512_load_ps(scores + i));
    __m256 half = _mm256_max_ps(_mm512_castps512_ps256(high), _mm512_extractf32x8_ps(high, 1));
    __m128 now = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    __m512 base = _mm512_broadcast_f32x4(now), sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < padded * HEADS; i += 16) {
        __m512 share = exp16(_mm512_sub_ps(_mm512_load_ps(scores + i), base));
        _mm512_store_ps(scores + i, share);
        sum = _mm512_add_ps(sum, share);
    }
    half = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
    __m128 factor = _mm512_castps512_ps128(exp16(_mm512_castps128_ps512(_mm_sub_ps(*most, now))));
    *total = _mm_add_ps(_mm_mul_ps(*total, factor), _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
    *most = now;
    return factor;
}

/* acc: (HEADS, dim) = acc * factor + scores' * values, `width` vectors of sixteen at a time. */
static inline __attribute__((always_inline)) void gather(
    const float *scores, const void *values, int64_t count, int64_t dim, int64_t from, const int width,
    int type, const float *factor, float (*acc)[MOST_DIM]) {
    __m512 sums[HEADS][4];
    for (int h = 0; h < HEADS; h++)
        for (int v = 0; v < width; v++)
            sums[h][v] = _mm512_mul_ps(_mm512_load_ps(acc[h] + from + v * 16), _mm512_set1_ps(factor[h]));
    for (int64_t key = 0; key < count; key++) {
        __m512 share[HEADS];
        for (int h = 0; h < HEADS; h++) share[h] = _mm512_set1_ps(scores[key * HEADS + h]);
        for (int v = 0; v < width; v++) {
            __m512 part = load16(values, key * dim + from + v * 16, type, 0xffff);
            for (int h = 0; h < HEADS; h++) sums[h][v] = _mm512_fmadd_ps(share[h], part, sums[h][v]);
        }
    }
    for (int h = 0; h < HEADS; h++)
        for (int v = 0; v < width; v++) _mm512_store_ps(acc[h] + from + v * 16, sums[h][v]);
}

/* One token, up to HEADS query heads of one key head. */
static void attend_token(
    const Attention *a, const Span *span, int64_t token, int64_t offset, int64_t kv_head, int64_t head, int count) {
    float query[HEADS][MOST_DIM] __attribute__((aligned(64)));
    float acc[HEADS][MOST_DIM] __attribute__((aligned(64)));
    float scores[BLOCK * HEADS] __attribute__((aligned(64))), factor[HEADS], totals[HEADS];
    const int type = a->type;
    for (int h = 0; h < HEADS; h++) {
        int64_t from = (head + (h < count ? h : 0)) * a->query_head + token * a->query_token;
        for (int64_t d = 0; d < a->dim; d += 16)
            _mm512_store_ps(query[h] + d, _mm512_mul_ps(load16(a->query, from + d, type, 0xffff), _mm512_set1_ps(a->scale)));
        memset(acc[h], 0, a->value_dim * sizeof(float));
    }
    __m128 most = _mm_set1_ps(-1e30f), total = _mm_setzero_ps();
    int64_t end = span->start + offset + 1;
    int64_t begin = a->window && end > a->window ? end - a->window : 0;
    for (int64_t key = begin; key < end; key += BLOCK) {
        int64_t here = end - key < BLOCK ? end - key : BLOCK;
        int64_t row = kv_head * span->room + key;
        const void *keys = at(span->keys, row * a->dim, type), *values = at(span->values, row * a->value_dim, type);
        if (type == BFLOAT16) rate(query, keys, here, a->dim, BFLOAT16, scores);
        else rate(query, keys, here, a->dim, FLOAT32, scores);
        _mm_storeu_ps(factor, weigh(scores, here, &most, &total));
        int64_t d = 0;
        for (; d + 64 <= a->value_dim; d += 64) {
            if (type == BFLOAT16) gather(scores, values, here, a->value_dim, d, 4, BFLOAT16, factor, acc);
            else gather(scores, values, here, a->value_dim, d, 4, FLOAT32, factor, acc);
        }
        for (; d < a->value_dim; d += 16) gather(scores, values, here, a->value_dim, d, 1, type, factor, acc);
    }
    _mm_storeu_ps(totals, total);
    for (int h = 0; h < count; h++) {
        int64_t to = (token * a->num_heads + head + h) * a->value_dim;
        for (int64_t d = 0; d < a->value_dim; d += 16)
            store16(a->out, to + d, type, 0xffff, _mm512_div_ps(_mm512_load_ps(acc[h] + d), _mm512_set1_ps(totals[h])));
    }
}

static void copy_rows(void *to, const void *from, int64_t stride, int64_t dim, int64_t count, int type) {
    for (int64_t row = 0; row < count; row++)
        memcpy((char *)to + row * dim * bytes_of(type), at(from, row * stride, type), dim * bytes_of(type));
}

/* The share of one key head of one sequence: its new keys and values are written, then all its queries. */
static void attend_head(const Attention *a, const Span *span, int64_t kv_head) {
    int64_t token = span->packed;
    int64_t row = kv_head * span->room + span->start;
    copy_rows((void *)at(span->keys, row * a->dim, a->type),
              at(a->key, kv_head * a->key_head + token * a->key_token, a->type), a->key_token, a->dim,
              span->num_new, a->type);
    copy_rows((void *)at(span->values, row * a->value_dim, a->type),
              at(a->value, kv_head * a->value_head + token * a->value_token, a->type), a->value_token,
              a->value_dim, span->num_new, a->type);
    int64_t group = a->num_heads / a->num_kv_heads;
    for (int64_t offset = 0; offset < span->num_new; offset++)
        for (int64_t member = 0; member < group; member += HEADS) {
            int count = group - member < HEADS ? group - member : HEADS;
            attend_token(a, span, token + offset, offset, kv_head, kv_head * group + member, count);
        }
}

void attend(const Attention *a, const Span *spans, int64_t num_spans, int num_threads) {
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(num_threads) if (num_threads > 1)
    for (int64_t number = 0; number < num_spans; number++)
        for (int64_t kv_head = 0; kv_head < a->num_kv_heads; kv_head++)
            attend_head(a, spans + number, kv_head);
}
