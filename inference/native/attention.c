/* Attention of the newest tokens over slabs of keys and values, for all sequences of a step at once.

   A block of keys at a time with a running maximum and sum (Milakov and Gimelshein 2018, "Online
   normalizer calculation for softmax"; Dao et al. 2022, FlashAttention), in float32. The query heads that
   share a key head go through it four at a time, so that a key is read once for four of them. */
#include "amx.h"
#include "attention.h"
#include "simd.h"
#include <string.h>

enum { BLOCK = 128, HEADS = 4, MOST_DIM = 512 };
/* Vectors of values at a time, as many as there are registers for their sums. */
enum { WIDTH = HAS_AVX512 ? 4 : 1 };

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

/* scores: (keys, HEADS), of which the first `heads` are meant. */
static inline __attribute__((always_inline)) void rate(
    const float (*query)[MOST_DIM], const void *keys, int64_t count, int64_t dim, int type, const int heads, float *scores) {
    for (int64_t key = 0; key < count; key++) {
        __m512 sums[HEADS] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        for (int64_t d = 0; d < dim; d += 16) {
            __m512 part = load16(keys, key * dim + d, type, 0xffff);
            for (int h = 0; h < heads; h++)
                sums[h] = _mm512_fmadd_ps(part, _mm512_load_ps(query[h] + d), sums[h]);
        }
        _mm_store_ps(scores + key * HEADS, sums_of(sums[0], sums[1], sums[2], sums[3]));
    }
}

#ifdef __AVX512BF16__
static inline __m512 dot(__m512 sums, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
}

/* The same by products of pairs, which lie side by side as they are. */
static inline __attribute__((always_inline)) void rate_pairs(
    const uint16_t (*query)[MOST_DIM], const uint16_t *keys, int64_t count, int64_t dim, float scale, const int heads, float *scores) {
    for (int64_t key = 0; key < count; key++) {
        __m512 sums[HEADS] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
        for (int64_t d = 0; d < dim; d += 32) {
            __m512i part = _mm512_loadu_si512(keys + key * dim + d);
            for (int h = 0; h < heads; h++)
                sums[h] = dot(sums[h], part, _mm512_load_si512(query[h] + d));
        }
        __m128 sum = sums_of(sums[0], sums[1], sums[2], sums[3]);
        _mm_store_ps(scores + key * HEADS, _mm_mul_ps(sum, _mm_set1_ps(scale)));
    }
}
#endif

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

/* acc: (heads, dim) = acc * factor + scores' * values, `width` vectors of sixteen at a time. */
static inline __attribute__((always_inline)) void gather(
    const float *scores, const void *values, int64_t count, int64_t dim, int64_t from, const int width,
    int type, const int heads, const float *factor, float (*acc)[MOST_DIM]) {
    __m512 sums[HEADS][4];
    for (int h = 0; h < heads; h++)
        for (int v = 0; v < width; v++)
            sums[h][v] = _mm512_mul_ps(_mm512_load_ps(acc[h] + from + v * 16), _mm512_set1_ps(factor[h]));
    for (int64_t key = 0; key < count; key++) {
        __m512 share[HEADS];
        for (int h = 0; h < heads; h++) share[h] = _mm512_set1_ps(scores[key * HEADS + h]);
        for (int v = 0; v < width; v++) {
            __m512 part = load16(values, key * dim + from + v * 16, type, 0xffff);
            for (int h = 0; h < heads; h++) sums[h][v] = _mm512_fmadd_ps(share[h], part, sums[h][v]);
        }
    }
    for (int h = 0; h < heads; h++)
        for (int v = 0; v < width; v++) _mm512_store_ps(acc[h] + from + v * 16, sums[h][v]);
}

/* One token, as many query heads of one key head. */
static inline __attribute__((always_inline)) void attend_heads(
    const Attention *a, const Span *span, int64_t token, int64_t offset, int64_t kv_head, int64_t head,
    const int type, const int heads) {
    float query[HEADS][MOST_DIM] __attribute__((aligned(64)));
    float acc[HEADS][MOST_DIM] __attribute__((aligned(64)));
    float scores[BLOCK * HEADS] __attribute__((aligned(64))), factor[HEADS], totals[HEADS];
#ifdef __AVX512BF16__
    uint16_t pairs[HEADS][MOST_DIM] __attribute__((aligned(64)));
    const int by_pairs = type == BFLOAT16 && a->dim % 32 == 0;
#endif
    for (int h = 0; h < heads; h++) {
        int64_t from = (head + h) * a->query_head + token * a->query_token;
#ifdef __AVX512BF16__
        if (by_pairs) memcpy(pairs[h], at(a->query, from, type), a->dim * 2);
        else
#endif
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
#ifdef __AVX512BF16__
        if (by_pairs) rate_pairs(pairs, keys, here, a->dim, a->scale, heads, scores);
        else
#endif
            rate(query, keys, here, a->dim, type, heads, scores);
        _mm_storeu_ps(factor, weigh(scores, here, &most, &total));
        int64_t d = 0;
        for (; d + 16 * WIDTH <= a->value_dim; d += 16 * WIDTH)
            gather(scores, values, here, a->value_dim, d, WIDTH, type, heads, factor, acc);
        for (; d < a->value_dim; d += 16) gather(scores, values, here, a->value_dim, d, 1, type, heads, factor, acc);
    }
    _mm_storeu_ps(totals, total);
    for (int h = 0; h < heads; h++) {
        int64_t to = (token * a->num_heads + head + h) * a->value_dim;
        for (int64_t d = 0; d < a->value_dim; d += 16)
            store16(a->out, to + d, type, 0xffff, _mm512_div_ps(_mm512_load_ps(acc[h] + d), _mm512_set1_ps(totals[h])));
    }
}

static inline __attribute__((always_inline)) void attend_typed(
    const Attention *a, const Span *span, int64_t token, int64_t offset, int64_t kv_head, int64_t head,
    int count, const int type) {
    switch (count) {
        case 1: attend_heads(a, span, token, offset, kv_head, head, type, 1); break;
        case 2: attend_heads(a, span, token, offset, kv_head, head, type, 2); break;
        case 3: attend_heads(a, span, token, offset, kv_head, head, type, 3); break;
        default: attend_heads(a, span, token, offset, kv_head, head, type, HEADS);
    }
}

/* One token, up to HEADS query heads of one key head. */
static void attend_token(
    const Attention *a, const Span *span, int64_t token, int64_t offset, int64_t kv_head, int64_t head, int count) {
    if (a->type == BFLOAT16) attend_typed(a, span, token, offset, kv_head, head, count, BFLOAT16);
    else attend_typed(a, span, token, offset, kv_head, head, count, FLOAT32);
}

/* --- many rows -------------------------------------------------------------------------------- */

#ifdef __AVX512BF16__
enum { LANES = 16, TILES = 4, KEYS = 64, CHUNK_DIM = 256, MOST_WIDTH = 8 };

/* Sixteen lanes of one key behind sixteen of another -> pairs. */
static const uint16_t PAIRED[32] = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                                    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

/* Up to TILES * LANES queries of one key head, whatever tokens and heads they are of: a lane each, so that
   nothing is summed across lanes. Pairs of bfloat16 lie side by side, as one product adds them up. */
typedef struct {
    const Attention *attention;
    const Span *span;
    int64_t kv_head, first_row, num_rows;
    int by_amx;
    __m512i ends[TILES];                            /* behind the last key that a row may see */
    __m512 most[TILES], total[TILES];
    __m512i query[TILES][CHUNK_DIM / 2];            /* pairs of dimensions */
    float scores[KEYS][TILES * LANES];
    __m512i shares[KEYS / 2][TILES];                /* pairs of keys */
    int32_t values[KEYS / 2 * CHUNK_DIM];           /* pairs of keys; by AMX dimensions are rows */
    __m512 sums[CHUNK_DIM][TILES];
} Rows;

static inline int64_t token_of(const Rows *rows, int64_t row) {
    return row / (rows->attention->num_heads / rows->attention->num_kv_heads);
}

/* Row `row` of the pass; those behind the last are the last again. */
static inline int64_t row_at(const Rows *rows, int64_t row) {
    return rows->first_row + (row < rows->num_rows ? row : rows->num_rows - 1);
}

static inline int64_t head_of(const Rows *rows, int64_t row) {
    int64_t group = rows->attention->num_heads / rows->attention->num_kv_heads;
    return rows->kv_head * group + row % group;
}

static void begin_rows(Rows *rows, int num_tiles) {
    const Attention *a = rows->attention;
    int32_t *ends = (int32_t *)rows->ends, *query = (int32_t *)rows->query;
    for (int64_t lane = 0; lane < num_tiles * LANES; lane++) {
        int64_t row = row_at(rows, lane), token = token_of(rows, row);
        ends[lane] = rows->span->start + token + 1;
        int64_t from = head_of(rows, row) * a->query_head + (rows->span->packed + token) * a->query_token;
        const int32_t *pairs = at(a->query, from, BFLOAT16);
        for (int64_t pair = 0; pair < a->dim / 2; pair++)
            query[(lane / LANES * (CHUNK_DIM / 2) + pair) * LANES + lane % LANES] = pairs[pair];
    }
    for (int t = 0; t < num_tiles; t++) {
        rows->most[t] = _mm512_set1_ps(-1e30f);
        rows->total[t] = _mm512_setzero_ps();
        for (int64_t d = 0; d < a->value_dim; d++) rows->sums[d][t] = _mm512_setzero_ps();
    }
}

/* What the next block needs: no processor foresees it over the end of a page. Inlined by force, for a function that
   only fetches does nothing, finds GCC, and is not called. */
static inline __attribute__((always_inline)) void fetch(const void *from, int64_t size) {
    for (int64_t offset = 0; offset < size; offset += 64) _mm_prefetch((const char *)from + offset, _MM_HINT_T1);
}

/* `width` keys at a time: as many sums at once as hide how long a product takes. */
static inline __attribute__((always_inline)) void rate_rows(
    Rows *rows, const int32_t *keys, const int32_t *values, int64_t count, const int num_tiles, const int width) {
    int64_t pairs = rows->attention->dim / 2, value_pairs = rows->attention->value_dim / 2;
    for (int64_t key = 0; key < count; key += width) {
        const int32_t *row[MOST_WIDTH];
        __m512 sums[MOST_WIDTH][TILES];
        fetch(keys + (KEYS + key) * pairs, width * pairs * 4);
        fetch(values + (KEYS + key) * value_pairs, width * value_pairs * 4);
        for (int k = 0; k < width; k++) {
            row[k] = keys + (key + k < count ? key + k : count - 1) * pairs;
            for (int t = 0; t < num_tiles; t++) sums[k][t] = _mm512_setzero_ps();
        }
        for (int64_t pair = 0; pair < pairs; pair++)
            for (int k = 0; k < width; k++) {
                __m512i both = _mm512_set1_epi32(row[k][pair]);
                for (int t = 0; t < num_tiles; t++) sums[k][t] = dot(sums[k][t], rows->query[t][pair], both);
            }
        for (int k = 0; k < width; k++)
            for (int t = 0; t < num_tiles; t++) _mm512_storeu_ps(rows->scores[key + k] + t * LANES, sums[k][t]);
    }
}

/* Whether all rows of a tile see all of a block's keys. */
static inline int is_all_seen(const Rows *rows, int64_t block, int64_t count, int t) {
    __m512i end = rows->ends[t];
    int is_seen = count == KEYS && !_mm512_cmplt_epi32_mask(end, _mm512_set1_epi32(block + KEYS));
    if (!rows->attention->window) return is_seen;
    __m512i begin = _mm512_sub_epi32(end, _mm512_set1_epi32(rows->attention->window));
    return is_seen && !_mm512_cmpgt_epi32_mask(begin, _mm512_set1_epi32(block));
}

/* What a tile's rows do not see of a block is rated lowest. */
static void hide_rows(Rows *rows, int64_t block, int64_t count, int t) {
    __m512i end = rows->ends[t], window = _mm512_set1_epi32(rows->attention->window);
    for (int64_t key = 0; key < (count + 1) / 2 * 2; key++) {
        __m512i here = _mm512_set1_epi32(block + key);
        __mmask16 is_seen = key < count ? _mm512_cmplt_epi32_mask(here, end) : 0;
        if (rows->attention->window) is_seen &= _mm512_cmpge_epi32_mask(here, _mm512_sub_epi32(end, window));
        float *score = rows->scores[key] + t * LANES;
        _mm512_mask_storeu_ps(score, ~is_seen, _mm512_set1_ps(-__builtin_inff()));
    }
}

/* Scores become shares in pairs of keys; what was summed up to a smaller maximum shrinks. Of two to the
   power of them, so that the scale turns scores into powers at once. */
static void weigh_rows(Rows *rows, int64_t block, int64_t count, int t) {
    const __m512i order = _mm512_loadu_si512(PAIRED);
    __m512 scale = _mm512_set1_ps(rows->attention->scale * 1.44269504f), high = rows->most[t], sum = _mm512_setzero_ps();
    int64_t padded = (count + 1) / 2 * 2;
    if (!is_all_seen(rows, block, count, t)) hide_rows(rows, block, count, t);
    for (int64_t key = 0; key < padded; key++)
        high = _mm512_max_ps(high, _mm512_mul_ps(_mm512_loadu_ps(rows->scores[key] + t * LANES), scale));
    for (int64_t key = 0; key < padded; key += 2) {
        __m512 one = power16(_mm512_fmsub_ps(_mm512_loadu_ps(rows->scores[key] + t * LANES), scale, high));
        __m512 two = power16(_mm512_fmsub_ps(_mm512_loadu_ps(rows->scores[key + 1] + t * LANES), scale, high));
        sum = _mm512_add_ps(sum, _mm512_add_ps(one, two));
        rows->shares[key / 2][t] = _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(two, one));
    }
    __m512 factor = power16(_mm512_sub_ps(rows->most[t], high));
    rows->total[t] = _mm512_fmadd_ps(rows->total[t], factor, sum);
    rows->most[t] = high;
    if (_mm512_cmp_ps_mask(factor, _mm512_set1_ps(1), _CMP_NEQ_UQ))
        for (int64_t d = 0; d < rows->attention->value_dim; d++)
            rows->sums[d][t] = _mm512_mul_ps(rows->sums[d][t], factor);
}

static void pair_values(Rows *rows, const void *values, int64_t count) {
    int64_t dim = rows->attention->value_dim;
    __m512i places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    places = _mm512_mullo_epi32(places, _mm512_set1_epi32(KEYS / 2));
    for (int64_t key = 0; key < count; key += 2)
        for (int64_t d = 0; d < dim; d += 16) {
            const uint16_t *from = (const uint16_t *)values + key * dim + d;
            __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), up = low;
            if (key + 1 < count) up = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(from + dim)));
            __m512i both = _mm512_or_si512(low, _mm512_slli_epi32(up, 16));
            int32_t *to = rows->values;
            if (rows->by_amx) _mm512_i32scatter_epi32(to + d * (KEYS / 2) + key / 2, places, both, 4);
            else _mm512_storeu_si512(to + key / 2 * CHUNK_DIM + d, both);
        }
}

#ifdef __AMX_BF16__
/* Keys by dimensions times dimensions by lanes. Keys behind the last are copied from it. */
static void rate_by_amx(Rows *rows, const uint16_t *keys, int64_t count, int num_tiles) {
    int64_t dim = rows->attention->dim;
    uint16_t copies[KEYS * CHUNK_DIM];
    if (count < KEYS) {
        for (int64_t key = 0; key < KEYS; key++)
            memcpy(copies + key * dim, keys + (key < count ? key : count - 1) * dim, dim * 2);
        keys = copies;
    }
    for (int64_t key = 0; key < (count + 15) / 16 * 16; key += 16)
        for (int t = 0; t < num_tiles; t++) {
            _tile_zero(0);
            for (int64_t d = 0; d < dim; d += 32) {
                _tile_loadd(1, keys + key * dim + d, dim * 2);
                _tile_loadd(2, rows->query[t] + d / 2, 64);
                _tile_dpbf16ps(0, 1, 2);
            }
            _tile_stored(0, rows->scores[key] + t * LANES, sizeof rows->scores[0]);
        }
}

/* Dimensions by keys times keys by lanes. */
static void gather_by_amx(Rows *rows, int64_t count, int num_tiles) {
    for (int64_t pair = (count + 1) / 2; pair < KEYS / 2; pair++)
        for (int t = 0; t < num_tiles; t++) rows->shares[pair][t] = _mm512_setzero_si512();
    for (int64_t d = 0; d < rows->attention->value_dim; d += 16)
        for (int t = 0; t < num_tiles; t++) {
            _tile_loadd(0, &rows->sums[d][t], sizeof rows->sums[0]);
            for (int64_t pair = 0; pair < (count + 1) / 2; pair += 16) {
                _tile_loadd(1, rows->values + d * (KEYS / 2) + pair, KEYS / 2 * 4);
                _tile_loadd(2, &rows->shares[pair][t], sizeof rows->shares[0]);
                _tile_dpbf16ps(0, 1, 2);
            }
            _tile_stored(0, &rows->sums[d][t], sizeof rows->sums[0]);
        }
}
#endif

/* `width` dimensions at a time, for the same reason. */
static inline __attribute__((always_inline)) void gather_rows(
    Rows *rows, int64_t count, const int num_tiles, const int width) {
    for (int64_t d = 0; d < rows->attention->value_dim; d += width) {
        __m512 sums[MOST_WIDTH][TILES];
        for (int i = 0; i < width; i++)
            for (int t = 0; t < num_tiles; t++) sums[i][t] = rows->sums[d + i][t];
        for (int64_t pair = 0; pair < (count + 1) / 2; pair++)
            for (int i = 0; i < width; i++) {
                __m512i values = _mm512_set1_epi32(rows->values[pair * CHUNK_DIM + d + i]);
                for (int t = 0; t < num_tiles; t++)
                    sums[i][t] = dot(sums[i][t], rows->shares[pair][t], values);
            }
        for (int i = 0; i < width; i++)
            for (int t = 0; t < num_tiles; t++) rows->sums[d + i][t] = sums[i][t];
    }
}

static void end_rows(const Rows *rows) {
    const Attention *a = rows->attention;
    const float *totals = (const float *)rows->total, *sums = (const float *)rows->sums;
    for (int64_t lane = 0; lane < rows->num_rows; lane++) {
        int64_t row = row_at(rows, lane), token = rows->span->packed + token_of(rows, row);
        uint16_t *out = (uint16_t *)a->out + (token * a->num_heads + head_of(rows, row)) * a->value_dim;
        float values[CHUNK_DIM];
        for (int64_t d = 0; d < a->value_dim; d++) values[d] = sums[d * TILES * LANES + lane] / totals[lane];
        for (int64_t d = 0; d < a->value_dim; d += 16)
            store16(out, d, BFLOAT16, 0xffff, _mm512_loadu_ps(values + d));
    }
}

static inline __attribute__((always_inline)) void attend_rows(Rows *rows, const int num_tiles) {
    const Attention *a = rows->attention;
    const Span *span = rows->span;
    begin_rows(rows, num_tiles);
    int64_t first_end = span->start + token_of(rows, rows->first_row) + 1;
    int64_t end = span->start + token_of(rows, rows->first_row + rows->num_rows - 1) + 1;
    int64_t begin = a->window && first_end > a->window ? first_end - a->window : 0;
    for (int64_t block = begin; block < end; block += KEYS) {
        int64_t count = end - block < KEYS ? end - block : KEYS, row = rows->kv_head * span->room + block;
        const void *keys = at(span->keys, row * a->dim, BFLOAT16);
        const void *values = at(span->values, row * a->value_dim, BFLOAT16);
        pair_values(rows, values, count);
#ifdef __AMX_BF16__
        if (rows->by_amx) {
            rate_by_amx(rows, keys, count, num_tiles);
            for (int t = 0; t < num_tiles; t++) weigh_rows(rows, block, count, t);
            gather_by_amx(rows, count, num_tiles);
            continue;
        }
#endif
        const int width = num_tiles == 1 ? 8 : 4;
        rate_rows(rows, keys, values, count, num_tiles, width);
        for (int t = 0; t < num_tiles; t++) weigh_rows(rows, block, count, t);
        gather_rows(rows, count, num_tiles, width);
    }
    end_rows(rows);
}

/* One pass over the queries of one key head of one sequence, whose keys and values are written. */
static void attend_chunk(const Attention *a, const Span *span, int64_t kv_head, int64_t pass) {
    Rows rows __attribute__((aligned(64)));
    rows.by_amx = 0;
#ifdef __AMX_BF16__
    TileConfig before;
    rows.by_amx = has_amx && a->dim % 32 == 0;
    if (rows.by_amx) {
        uint8_t sixteen[8] = {16, 16, 16, 16, 16, 16, 16, 16};
        memset(rows.values, 0, sizeof rows.values); /* what was no number would stay none, times 0 */
        _tile_storeconfig(&before);
        configure(sixteen);
    }
#endif
    int64_t row = pass * TILES * LANES, left = span->num_new * (a->num_heads / a->num_kv_heads) - row;
    rows.attention = a, rows.span = span, rows.kv_head = kv_head, rows.first_row = row;
    rows.num_rows = left < TILES * LANES ? left : TILES * LANES;
    switch ((rows.num_rows + LANES - 1) / LANES) {
        case 1: attend_rows(&rows, 1); break;
        case 2: attend_rows(&rows, 2); break;
        case 3: attend_rows(&rows, 3); break;
        default: attend_rows(&rows, TILES);
    }
#ifdef __AMX_BF16__
    if (rows.by_amx) restore(&before);
#endif
}
#endif

/* How many tokens of a sequence are best read here, and not by large matrix products: with AMX those gain
   more by their size. */
int most_tokens(int type, int64_t dim, int64_t value_dim) {
#ifdef __AVX512BF16__
    if (type == BFLOAT16 && dim <= CHUNK_DIM && value_dim <= CHUNK_DIM) return has_amx ? 64 : 1 << 30;
#endif
    (void)type, (void)dim, (void)value_dim;
    return 8;
}

static void copy_rows(void *to, const void *from, int64_t stride, int64_t dim, int64_t count, int type) {
    for (int64_t row = 0; row < count; row++)
        memcpy((char *)to + row * dim * bytes_of(type), at(from, row * stride, type), dim * bytes_of(type));
}

/* The new keys and values of one key head of one sequence. */
static void write_head(const Attention *a, const Span *span, int64_t kv_head) {
    int64_t token = span->packed;
    int64_t row = kv_head * span->room + span->start;
    copy_rows((void *)at(span->keys, row * a->dim, a->type),
              at(a->key, kv_head * a->key_head + token * a->key_token, a->type), a->key_token, a->dim,
              span->num_new, a->type);
    copy_rows((void *)at(span->values, row * a->value_dim, a->type),
              at(a->value, kv_head * a->value_head + token * a->value_token, a->type), a->value_token,
              a->value_dim, span->num_new, a->type);
}

/* Into how many passes the queries of one key head fall; 0: each token comes by itself. */
static int64_t passes_of(const Attention *a, const Span *span) {
#ifdef __AVX512BF16__
    int64_t num_rows = span->num_new * (a->num_heads / a->num_kv_heads);
    if (!span->each_alone && most_tokens(a->type, a->dim, a->value_dim) > 8)
        return (num_rows + TILES * LANES - 1) / (TILES * LANES);
#endif
    (void)a, (void)span;
    return 0;
}

static void attend_group(const Attention *a, const Span *span, int64_t kv_head, int64_t offset) {
    int64_t group = a->num_heads / a->num_kv_heads;
    for (int64_t member = 0; member < group; member += HEADS) {
        int count = group - member < HEADS ? group - member : HEADS;
        attend_token(a, span, span->packed + offset, offset, kv_head, kv_head * group + member, count);
    }
}

void attend(const Attention *a, const Span *spans, int64_t num_spans, int num_threads) {
#pragma omp parallel num_threads(num_threads) if (num_threads > 1)
    {
#pragma omp for collapse(2) schedule(dynamic)
        for (int64_t number = 0; number < num_spans; number++)
            for (int64_t kv_head = 0; kv_head < a->num_kv_heads; kv_head++)
                write_head(a, spans + number, kv_head);
        for (int64_t number = 0; number < num_spans; number++) {
            const Span *span = spans + number;
            int64_t passes = passes_of(a, span), parts = passes ? passes : span->num_new;
#pragma omp for schedule(dynamic) nowait
            for (int64_t part = 0; part < a->num_kv_heads * parts; part++) {
#ifdef __AVX512BF16__
                if (passes) {
                    attend_chunk(a, span, part / passes, part % passes);
                    continue;
                }
#endif
                attend_group(a, span, part / parts, part % parts);
            }
        }
    }
}
