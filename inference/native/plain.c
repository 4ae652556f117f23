/* Linear layers in bfloat16, by AVX512-BF16, from weights as checkpoints have them: none are packed, so they
   stay where they are mapped, and a table that is tied is read by both.

   One row is multiplied where the weights lie; for several, blocks of 32 outputs are turned as they are
   read, so that a lane is an output. Sums are in float32, and a row of several comes out the same beside
   any others. One caller at a time: scratch memory is shared. */
#include "amx.h"
#include "scratch.h"
#include "simd.h"
#include <string.h>

#ifdef __AVX512BF16__
enum { BLOCK = 32, MOST_ROWS = 8, OUTPUTS = 4, STEP = 32, LINE = 64, AHEAD = 2048, MOST_AHEAD = 384 << 10 };

typedef struct {
    const uint16_t *weight, *bias, *rows; /* (outputs, inputs), (outputs,) or NULL, (num_rows, stride) */
    uint16_t *out;                        /* (num_rows, outputs) */
    int64_t num_outputs, num_inputs, stride, num_rows;
} Product;

static inline __m512 dot(__m512 sums, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
}

static inline __m512i part_of(const uint16_t *values, int64_t count) {
    __mmask32 mask = count >= STEP ? 0xffffffffu : (1u << count) - 1;
    return _mm512_maskz_loadu_epi16(mask, values);
}

static inline void finish(const Product *p, int64_t row, int64_t output, __m512 sums) {
    __mmask16 mask = first(p->num_outputs - output);
    if (p->bias) sums = _mm512_add_ps(sums, load16(p->bias, output, BFLOAT16, mask));
    store16(p->out + row * p->num_outputs, output, BFLOAT16, mask, sums);
}

/* --- one row ---------------------------------------------------------------------------------- */

/* Weights for `count` outputs from `output` on, each by all inputs; their sums. */
static inline __attribute__((always_inline)) void sums_of(
    const Product *p, int64_t output, float *to, const int count) {
    const uint16_t *weight = p->weight + output * p->num_inputs;
    __m512 sums[OUTPUTS];
    for (int o = 0; o < count; o++) sums[o] = _mm512_setzero_ps();
    for (int64_t at = 0; at < p->num_inputs; at += STEP) {
        int64_t left = p->num_inputs - at;
        __m512i inputs = part_of(p->rows + at, left);
#pragma GCC unroll 4
        for (int o = 0; o < count; o++) {
            const uint16_t *from = weight + o * p->num_inputs + at;
            _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
            sums[o] = dot(sums[o], inputs, part_of(from, left));
        }
    }
    for (int o = 0; o < count; o++) to[o] = _mm512_reduce_add_ps(sums[o]);
}

static void one_row(const Product *p, int64_t begin) {
    float sums[16];
    for (int64_t block = begin; block < begin + BLOCK && block < p->num_outputs; block += 16) {
        int64_t count = p->num_outputs - block < 16 ? p->num_outputs - block : 16, done = 0;
        for (; done + OUTPUTS <= count; done += OUTPUTS) sums_of(p, block + done, sums + done, OUTPUTS);
        for (; done < count; done++) sums_of(p, block + done, sums + done, 1);
        finish(p, 0, block, _mm512_maskz_loadu_ps(first(count), sums));
    }
}

/* --- several rows ----------------------------------------------------------------------------- */

/* Sixteen outputs of sixteen pairs -> sixteen pairs of sixteen outputs. */
static inline void turn(__m512i *v) {
    __m512i w[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* 128 bits each: pair i + 4 * lane of four outputs */
        w[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
        w[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
        w[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
        w[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_i32x4(w[i], w[i + 8], 0x88);
        v[i + 8] = _mm512_shuffle_i32x4(w[i], w[i + 8], 0xdd);
        v[i + 4] = _mm512_shuffle_i32x4(w[i + 4], w[i + 12], 0x88);
        v[i + 12] = _mm512_shuffle_i32x4(w[i + 4], w[i + 12], 0xdd);
    }
}

/* panel: (inputs / 2, 32 outputs) in pairs; outputs behind the last are 0. */
static void turn_block(const Product *p, int64_t output, __m512i *panel) {
    for (int64_t at = 0; at < p->num_inputs; at += STEP)
        for (int half = 0; half < 2; half++) {
            __m512i v[16];
            for (int o = 0; o < 16; o++) {
                int64_t from = output + half * 16 + o;
                v[o] = from < p->num_outputs ? part_of(p->weight + from * p->num_inputs + at, p->num_inputs - at)
                                             : _mm512_setzero_si512();
            }
            turn(v);
            for (int i = 0; i < 16; i++) panel[(at / 2 + i) * 2 + half] = v[i];
        }
}

/* `ahead` is what comes next: lines of it are asked for while these are multiplied. */
static inline __attribute__((always_inline)) void some_rows(
    const Product *p, int64_t row, int64_t output, const __m512i *panel, const char *ahead,
    int64_t lines_ahead, const int num_rows) {
    const uint16_t *rows = p->rows + row * p->stride;
    __m512 sums[MOST_ROWS][2];
    for (int r = 0; r < num_rows; r++) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
    for (int64_t pair = 0; pair < p->num_inputs / 2; pair++) {
        for (int64_t i = 0; i < lines_ahead; i++, ahead += LINE) _mm_prefetch(ahead, _MM_HINT_T1);
        __m512i left = panel[pair * 2], right = panel[pair * 2 + 1];
#pragma GCC unroll 8
        for (int r = 0; r < num_rows; r++) {
            int32_t both;
            memcpy(&both, rows + r * p->stride + pair * 2, sizeof both);
            __m512i inputs = _mm512_set1_epi32(both);
            sums[r][0] = dot(sums[r][0], inputs, left);
            sums[r][1] = dot(sums[r][1], inputs, right);
        }
    }
    for (int r = 0; r < num_rows; r++)
        for (int half = 0; half < 2; half++)
            if (output + half * 16 < p->num_outputs) finish(p, row + r, output + half * 16, sums[r][half]);
}

/* Rows in passes of nearly one size; see linear.c. */
static void several_rows(const Product *p, int64_t output, __m512i *panel) {
    turn_block(p, output, panel);
    int64_t passes = (p->num_rows + MOST_ROWS - 1) / MOST_ROWS, lines = 2; /* of a block, for two inputs */
    const char *ahead = (const char *)(p->weight + (output + BLOCK) * p->num_inputs);
    if (BLOCK * 2 * p->num_inputs > MOST_AHEAD) lines = 0;
    for (int64_t row = 0; passes; passes--) {
        int64_t num_rows = (p->num_rows - row + passes - 1) / passes;
        int64_t lines_ahead = (lines + passes - 1) / passes;
        switch (num_rows) {
            case 1: some_rows(p, row, output, panel, ahead, lines_ahead, 1); break;
            case 2: some_rows(p, row, output, panel, ahead, lines_ahead, 2); break;
            case 3: some_rows(p, row, output, panel, ahead, lines_ahead, 3); break;
            case 4: some_rows(p, row, output, panel, ahead, lines_ahead, 4); break;
            case 5: some_rows(p, row, output, panel, ahead, lines_ahead, 5); break;
            case 6: some_rows(p, row, output, panel, ahead, lines_ahead, 6); break;
            case 7: some_rows(p, row, output, panel, ahead, lines_ahead, 7); break;
            default: some_rows(p, row, output, panel, ahead, lines_ahead, MOST_ROWS);
        }
        row += num_rows;
        lines -= lines_ahead;
        ahead += p->num_inputs / 2 * lines_ahead * LINE;
    }
}

/* All are of bfloat16. num_inputs: even, or there is one row. */
void plain_linear(const void *weight, const void *bias, const void *rows, int64_t stride, void *out,
                  int64_t num_rows, int64_t num_inputs, int64_t num_outputs, int num_threads) {
    Product p = {weight, bias, rows, out, num_outputs, num_inputs, stride, num_rows};
    int64_t panel_size = (num_inputs + STEP - 1) / STEP * STEP, blocks = (num_outputs + BLOCK - 1) / BLOCK;
    __m512i *panels = num_rows > 1 ? room(num_threads * panel_size * LINE) : NULL;
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1)
    for (int64_t share = 0; share < num_threads; share++)
        for (int64_t block = share * blocks / num_threads; block < (share + 1) * blocks / num_threads; block++) {
            if (num_rows == 1) one_row(&p, block * BLOCK);
            else several_rows(&p, block * BLOCK, panels + share * panel_size);
        }
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
