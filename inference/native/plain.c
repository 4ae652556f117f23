/* Linear layers in bfloat16, by AVX512-BF16, from weights as checkpoints have them: none are packed, so they
   stay where they are mapped, and a table that is tied is read by both.

   A few outputs by a few rows are summed at a time, a lane having every sixteenth pair of inputs; the lanes
   are added at the end. Sums are in float32, and a row comes out the same beside any others. */
#include "amx.h"
#include "scratch.h"
#include "simd.h"

#ifdef __AVX512BF16__
enum { BLOCK = 64, OUTPUTS = 4, MOST_ROWS = 6, STEP = 32, LINE = 64, NEAR = 24 << 10, LEAST_SPAN = 1024 };

typedef struct {
    const uint16_t *weight, *bias, *rows; /* (outputs, inputs), (outputs,) or NULL, (num_rows, stride) */
    uint16_t *out;                        /* (num_rows, outputs) */
    int64_t num_outputs, num_inputs, stride, num_rows;
} Product;

/* Weights that come next: lines of a span of some rows. */
typedef struct {
    const char *at, *end; /* of the row's span */
    int64_t size, skipped; /* bytes of a span, and of what lies between two */
} Ahead;

typedef struct {
    __m512 *kept; /* (OUTPUTS of a block, num_rows, OUTPUTS): lanes between two spans */
    float *whole; /* (num_rows, BLOCK) */
} Sums;

static inline __m512 dot(__m512 sums, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
}

static inline __m512i part_of(const uint16_t *values, int64_t count) {
    __mmask32 mask = count >= STEP ? 0xffffffffu : (1u << count) - 1;
    return _mm512_maskz_loadu_epi16(mask, values);
}

/* Four vectors -> the sums of their lanes, in the first four lanes. */
static inline __m128 added(const __m512 *v) {
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
    __m512 all = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* What `num_rows` rows from `row` on add to the sums of OUTPUTS outputs from `output` on, by the inputs from
   `begin` to `end`. Lines that are asked for meanwhile belong to `next`. */
static inline __attribute__((always_inline)) void tile(
    const Product *p, int64_t row, int64_t output, int64_t begin, int64_t end, Sums to, Ahead *next,
    int64_t lines_ahead, const int num_rows) {
    const uint16_t *rows = p->rows + row * p->stride, *weights[OUTPUTS];
    __m512 sums[MOST_ROWS][OUTPUTS], *kept = to.kept + row * OUTPUTS;
    Ahead ahead = *next;
    for (int o = 0; o < OUTPUTS; o++) {
        int64_t from = output + o < p->num_outputs ? output + o : output; /* sums that nobody takes */
        weights[o] = p->weight + from * p->num_inputs;
    }
    for (int r = 0; r < num_rows; r++)
        for (int o = 0; o < OUTPUTS; o++) sums[r][o] = begin ? kept[r * OUTPUTS + o] : _mm512_setzero_ps();
    for (int64_t at = begin; at < end; at += STEP) {
        int64_t left = end - at;
        __m512i taken[OUTPUTS];
        for (int64_t i = 0; i < lines_ahead; i++) {
            _mm_prefetch(ahead.at, _MM_HINT_T0);
            ahead.at += LINE;
            if (ahead.at >= ahead.end) {
                ahead.at = ahead.end + ahead.skipped;
                ahead.end = ahead.at + ahead.size;
            }
        }
#pragma GCC unroll 4
        for (int o = 0; o < OUTPUTS; o++) taken[o] = part_of(weights[o] + at, left);
#pragma GCC unroll 6
        for (int r = 0; r < num_rows; r++) {
            __m512i inputs = part_of(rows + r * p->stride + at, left);
#pragma GCC unroll 4
            for (int o = 0; o < OUTPUTS; o++) sums[r][o] = dot(sums[r][o], inputs, taken[o]);
        }
    }
    *next = ahead;
    if (end < p->num_inputs) {
        for (int r = 0; r < num_rows; r++)
            for (int o = 0; o < OUTPUTS; o++) kept[r * OUTPUTS + o] = sums[r][o];
    } else
        for (int r = 0; r < num_rows; r++) _mm_storeu_ps(to.whole + (row + r) * BLOCK, added(sums[r]));
}

/* Rows in passes of nearly one size; see linear.c. */
static void all_rows(const Product *p, int64_t output, int64_t begin, int64_t end, Sums to, Ahead ahead) {
    int64_t passes = (p->num_rows + MOST_ROWS - 1) / MOST_ROWS, lines = OUTPUTS;
    for (int64_t row = 0; passes; passes--) {
        int64_t num_rows = (p->num_rows - row + passes - 1) / passes;
        int64_t lines_ahead = (lines + passes - 1) / passes;
        switch (num_rows) {
            case 1: tile(p, row, output, begin, end, to, &ahead, lines_ahead, 1); break;
            case 2: tile(p, row, output, begin, end, to, &ahead, lines_ahead, 2); break;
            case 3: tile(p, row, output, begin, end, to, &ahead, lines_ahead, 3); break;
            case 4: tile(p, row, output, begin, end, to, &ahead, lines_ahead, 4); break;
            case 5: tile(p, row, output, begin, end, to, &ahead, lines_ahead, 5); break;
            default: tile(p, row, output, begin, end, to, &ahead, lines_ahead, MOST_ROWS);
        }
        row += num_rows;
        lines -= lines_ahead;
    }
}

/* A block of outputs, span after span of the inputs, so that the rows' part of them stays in the nearest cache. */
static void block_of(const Product *p, int64_t begin_output, Sums sums) {
    int64_t most = NEAR / 2 / p->num_rows > LEAST_SPAN ? NEAR / 2 / p->num_rows : LEAST_SPAN;
    int64_t spans = (p->num_inputs + most - 1) / most;
    int64_t span = (p->num_inputs / spans + STEP - 1) / STEP * STEP;
    int64_t end_output = begin_output + BLOCK < p->num_outputs ? begin_output + BLOCK : p->num_outputs;
    for (int64_t begin = 0; begin < p->num_inputs; begin += span) {
        int64_t end = begin + span < p->num_inputs ? begin + span : p->num_inputs;
        for (int64_t output = begin_output; output < end_output; output += OUTPUTS) {
            int64_t done = output - begin_output;
            int is_last = output + OUTPUTS >= end_output && end < p->num_inputs;
            const uint16_t *next = p->weight + (is_last ? begin_output : output + OUTPUTS) * p->num_inputs
                                   + (is_last ? end : begin);
            Ahead ahead = {(const char *)next, (const char *)(next + span), span * 2, (p->num_inputs - span) * 2};
            all_rows(p, output, begin, end, (Sums){sums.kept + done * p->num_rows, sums.whole + done}, ahead);
        }
    }
    for (int64_t row = 0; row < p->num_rows; row++)
        for (int64_t output = begin_output; output < end_output; output += 16) {
            __mmask16 mask = first(end_output - output);
            __m512 all = _mm512_maskz_loadu_ps(mask, sums.whole + row * BLOCK + output - begin_output);
            if (p->bias) all = _mm512_add_ps(all, load16(p->bias, output, BFLOAT16, mask));
            store16(p->out + row * p->num_outputs, output, BFLOAT16, mask, all);
        }
}

/* All are of bfloat16. num_inputs: even, or there is one row. */
void plain_linear(const void *weight, const void *bias, const void *rows, int64_t stride, void *out,
                  int64_t num_rows, int64_t num_inputs, int64_t num_outputs, int num_threads) {
    Product p = {weight, bias, rows, out, num_outputs, num_inputs, stride, num_rows};
    int64_t blocks = (num_outputs + BLOCK - 1) / BLOCK, size = num_rows * BLOCK;
    __m512 *kept = room(num_threads * size * (sizeof(__m512) + sizeof(float)));
    float *whole = (float *)(kept + num_threads * size);
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1)
    for (int64_t share = 0; share < num_threads; share++)
        for (int64_t block = share * blocks / num_threads; block < (share + 1) * blocks / num_threads; block++)
            block_of(&p, block * BLOCK, (Sums){kept + share * size, whole + share * size});
}
#else
void plain_linear(void) {} /* nobody calls it */
#endif

/* Whether there is that, and no AMX, by which oneDNN is quicker. */
int has_plain_linear(void) {
#ifdef __AVX512BF16__
    return !has_amx;
#else
    return 0;
#endif
}
