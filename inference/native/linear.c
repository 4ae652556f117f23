/* Linear layers in 8 bits with a scale per row of the input and per output channel.

   Weights lie in tiles of 16 outputs by 64 inputs, four inputs of an output side by side: what AMX
   multiplies as one tile, and VNNI with four inputs broadcast. Whole numbers are summed, so both give
   the same result, and a row the same in any batch. One caller at a time: scratch memory is shared. */
#include "simd.h"
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __AVX512VNNI__
#error "these kernels are written for AVX512-VNNI"
#endif

enum { TILE = 1024, ZERO = 128, LINE = 64, AHEAD = 4096, MOST_ROWS = 6 };

typedef struct {
    const int8_t *tiles;   /* outputs / 16, inputs / 64, 16 groups of inputs, 16 outputs, 4 inputs */
    const float *scales;   /* one per output, padded to 16, as what follows */
    const int32_t *shifts; /* ZERO times the sum of an output's weights */
    const float *bias;     /* may be NULL */
    int64_t num_outputs, num_inputs, padded_inputs;
} Weight;

typedef struct {
    const Weight *weight;
    const uint8_t *rows; /* num_rows, padded_inputs; ZERO stands for 0 */
    const float *scales; /* one per row */
    int64_t num_rows;
    void *out;
    int out_type;
} Product;

static int has_amx;

static void *room(int64_t size) {
    static void *memory;
    static int64_t have;
    if (size > have) {
        free(memory);
        have = (size + 4095) / 4096 * 4096;
        memory = aligned_alloc(4096, have);
    }
    return memory;
}

void quantize_row(const void *row, int64_t count, int64_t padded, int type, uint8_t *out, float *scale) {
    __m512 largest = _mm512_setzero_ps();
    __mmask16 is_broken = 0;
    for (int64_t at = 0; at < count; at += 16) {
        __m512 size = _mm512_abs_ps(load16(row, at, type, first(count - at)));
        is_broken |= _mm512_cmp_ps_mask(size, _mm512_set1_ps(__builtin_inff()), _CMP_NLT_UQ);
        largest = _mm512_max_ps(largest, size);
    }
    float most = _mm512_reduce_max_ps(largest);
    if (most < 1e-12f) most = 1e-12f;
    *scale = is_broken ? __builtin_nanf("") : most / 127;
    __m512 factor = _mm512_set1_ps(127 / most);
    for (int64_t at = 0; at < padded; at += 16) {
        __m512 values = load16(row, at, type, first(count - at));
        __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(values, factor));
        whole = _mm512_add_epi32(whole, _mm512_set1_epi32(ZERO));
        _mm_storeu_si128((__m128i *)(out + at), _mm512_cvtepi32_epi8(whole));
    }
}

static inline void finish(const Product *p, int64_t row, int64_t output, __m512i sums) {
    const Weight *w = p->weight;
    __m512 values = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_loadu_si512(w->shifts + output)));
    values = _mm512_mul_ps(values, _mm512_set1_ps(p->scales[row]));
    values = _mm512_mul_ps(values, _mm512_loadu_ps(w->scales + output));
    if (w->bias) values = _mm512_add_ps(values, _mm512_loadu_ps(w->bias + output));
    char *out = (char *)p->out + row * w->num_outputs * bytes_of(p->out_type);
    store16(out, output, p->out_type, first(w->num_outputs - output), values);
}

static inline const int8_t *tiles_of(const Weight *w, int64_t block) {
    return w->tiles + block * 16 * w->padded_inputs;
}

static inline int64_t num_blocks(const Weight *w) { return (w->num_outputs + 15) / 16; }

/* --- VNNI ------------------------------------------------------------------------------------- */

/* One row: memory is the limit, so four sums hide the latency and lines are asked for ahead. */
static void one_row(const Product *p, int64_t row, int64_t block) {
    const int8_t *tile = tiles_of(p->weight, block);
    const int32_t *fours = (const int32_t *)(p->rows + row * p->weight->padded_inputs);
    __m512i sums[4] = {0};
    for (int64_t four = 0; four < p->weight->padded_inputs / 4; four += 4) {
        const int8_t *lines = tile + four * LINE;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            _mm_prefetch(lines + AHEAD + i * LINE, _MM_HINT_T0);
            __m512i weights = _mm512_load_si512(lines + i * LINE);
            sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_set1_epi32(fours[four + i]), weights);
        }
    }
    sums[0] = _mm512_add_epi32(_mm512_add_epi32(sums[0], sums[1]), _mm512_add_epi32(sums[2], sums[3]));
    finish(p, row, block * 16, sums[0]);
}

static inline __attribute__((always_inline)) void some_rows(
    const Product *p, int64_t row, int64_t block, const int num_rows, const int num_cols) {
    int64_t width = p->weight->padded_inputs;
    const int8_t *tiles = tiles_of(p->weight, block);
    const int32_t *fours = (const int32_t *)(p->rows + row * width);
    __m512i sums[MOST_ROWS][2] = {{{0}}};
    for (int64_t four = 0; four < width / 4; four++) {
        __m512i weights[2];
#pragma GCC unroll 2
        for (int c = 0; c < num_cols; c++)
            weights[c] = _mm512_load_si512(tiles + c * 16 * width + four * LINE);
#pragma GCC unroll 6
        for (int r = 0; r < num_rows; r++) {
            __m512i inputs = _mm512_set1_epi32(fours[r * (width / 4) + four]);
#pragma GCC unroll 2
            for (int c = 0; c < num_cols; c++)
                sums[r][c] = _mm512_dpbusd_epi32(sums[r][c], inputs, weights[c]);
        }
    }
    for (int r = 0; r < num_rows; r++)
        for (int c = 0; c < num_cols; c++) finish(p, row + r, (block + c) * 16, sums[r][c]);
}

static void rows_by_vnni(const Product *p, int64_t block, int num_cols) {
    for (int64_t row = 0; row < p->num_rows; row += MOST_ROWS) {
        int64_t left = p->num_rows - row;
        if (num_cols == 1) {
            for (int64_t r = 0; r < left && r < MOST_ROWS; r++) one_row(p, row + r, block);
            continue;
        }
        switch (left) {
            case 1: one_row(p, row, block), one_row(p, row, block + 1); break;
            case 2: some_rows(p, row, block, 2, 2); break;
            case 3: some_rows(p, row, block, 3, 2); break;
            case 4: some_rows(p, row, block, 4, 2); break;
            case 5: some_rows(p, row, block, 5, 2); break;
            default: some_rows(p, row, block, MOST_ROWS, 2);
        }
    }
}

/* --- AMX -------------------------------------------------------------------------------------- */

#ifdef __AMX_INT8__
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} __attribute__((packed)) TileConfig;

/* Tiles 0 to 3 hold sums, 4 and 5 inputs (upper and lower rows), 6 and 7 weights. */
static void configure(int upper, int lower) {
    TileConfig config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    uint8_t rows[8] = {upper, upper, lower, lower, upper, lower, 16, 16};
    for (int i = 0; i < 8; i++) config.rows[i] = rows[i] ? rows[i] : 1, config.bytes_per_row[i] = 64;
    __asm__ volatile("" ::"m"(config) : "memory"); /* gcc 12 may load it before it is written */
    _tile_loadconfig(&config);
}

static void store_sums(const Product *p, int64_t row, int64_t block, int upper, int lower, int num_cols) {
    int32_t sums[4][16][16] __attribute__((aligned(64)));
    _tile_stored(0, sums[0], 64);
    if (num_cols == 2) _tile_stored(1, sums[1], 64);
    if (lower) _tile_stored(2, sums[2], 64);
    if (lower && num_cols == 2) _tile_stored(3, sums[3], 64);
    for (int c = 0; c < num_cols; c++) {
        for (int r = 0; r < upper; r++)
            finish(p, row + r, (block + c) * 16, _mm512_load_si512(sums[c][r]));
        for (int r = 0; r < lower; r++)
            finish(p, row + 16 + r, (block + c) * 16, _mm512_load_si512(sums[2 + c][r]));
    }
}

static void rows_by_amx(const Product *p, int64_t row, int64_t block, int lower, int num_cols) {
    int64_t width = p->weight->padded_inputs;
    const int8_t *left = tiles_of(p->weight, block), *right = left + 16 * width;
    const uint8_t *top = p->rows + row * width, *bottom = top + 16 * width;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t tile = 0; tile < width / 64; tile++) {
        _tile_loadd(6, left + tile * TILE, LINE);
        _tile_loadd(4, top + tile * 64, width);
        _tile_dpbusd(0, 4, 6);
        if (num_cols == 2) {
            _tile_loadd(7, right + tile * TILE, LINE);
            _tile_dpbusd(1, 4, 7);
        }
        if (!lower) continue;
        _tile_loadd(5, bottom + tile * 64, width);
        _tile_dpbusd(2, 5, 6);
        if (num_cols == 2) _tile_dpbusd(3, 5, 7);
    }
}

/* oneDNN configures tiles too, and relies on what it has set. */
static void blocks_by_amx(const Product *p, int64_t begin, int64_t end) {
    TileConfig before;
    _tile_storeconfig(&before);
    int was = -1;
    for (int64_t block = begin; block < end; block += 2) {
        int num_cols = block + 1 < end ? 2 : 1;
        for (int64_t row = 0; row < p->num_rows; row += 32) {
            int64_t left = p->num_rows - row;
            int upper = left < 16 ? left : 16, lower = left <= 16 ? 0 : left < 32 ? left - 16 : 16;
            if (upper * 32 + lower != was) configure(upper, lower), was = upper * 32 + lower;
            rows_by_amx(p, row, block, lower, num_cols);
            store_sums(p, row, block, upper, lower, num_cols);
        }
    }
    if (before.palette) _tile_loadconfig(&before);
    else _tile_release();
}
#endif

/* --- what Python calls ------------------------------------------------------------------------ */

/* Ask the kernel for AMX (arch_prctl(2): ARCH_REQ_XCOMP_PERM); 1 if there is, to be used from now on. */
int begin(int may_use_amx) {
#ifdef __AMX_INT8__
    has_amx = may_use_amx && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#endif
    return has_amx;
}

/* weights: (outputs, inputs) -> tiles, which are zero as they come. */
void pack(const int8_t *weights, const Weight *w) {
    int8_t *tiles = (int8_t *)w->tiles;
    for (int64_t output = 0; output < w->num_outputs; output++)
        for (int64_t input = 0; input < w->num_inputs; input++) {
            int64_t tile = output / 16 * 16 * w->padded_inputs + input / 64 * TILE;
            tiles[tile + input % 64 / 4 * LINE + output % 16 * 4 + input % 4] = *weights++;
        }
}

static void multiply(const Product *p, int num_threads) {
    int64_t pairs = (num_blocks(p->weight) + 1) / 2;
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1)
    for (int64_t share = 0; share < num_threads; share++) {
        int64_t begin = share * pairs / num_threads * 2, end = (share + 1) * pairs / num_threads * 2;
        if (end > num_blocks(p->weight)) end = num_blocks(p->weight);
#ifdef __AMX_INT8__
        if (has_amx && p->num_rows > 1) {
            blocks_by_amx(p, begin, end);
            continue;
        }
#endif
        for (int64_t block = begin; block < end; block += 2)
            rows_by_vnni(p, block, block + 1 < end ? 2 : 1);
    }
}

/* rows: (num_rows, inputs), each row_bytes behind the last -> out: (num_rows, outputs). */
void linear(const Weight *w, const void *rows, int64_t num_rows, int64_t row_bytes, int type,
            void *out, int out_type, int num_threads) {
    uint8_t *quantized = room(num_rows * (w->padded_inputs + 4));
    float *scales = (float *)(quantized + num_rows * w->padded_inputs);
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 15)
    for (int64_t row = 0; row < num_rows; row++)
        quantize_row((const char *)rows + row * row_bytes, w->num_inputs, w->padded_inputs, type,
                     quantized + row * w->padded_inputs, scales + row);
    Product product = {w, quantized, scales, num_rows, out, out_type};
    multiply(&product, num_threads);
}
