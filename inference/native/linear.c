/* Linear layers in 8 bits with a scale per row of the input and per output channel.

   Weights lie in tiles of 16 outputs by 64 inputs, four inputs of an output side by side: what AMX
   multiplies as one tile, and VNNI with four inputs broadcast. Whole numbers are summed, so both give
   the same result, and a row the same in any batch. One caller at a time: scratch memory is shared.

   Weights of 4 bits are 8-bit ones behind a multiplication: a whole factor for every 32 inputs of an
   output (Lin et al. 2024, QServe), so sums need no scales in between. They are unpacked as they are read, or
   multiplied as they are where there is no VNNI. */
#include "amx.h"
#include "linear.h"
#include "scratch.h"
#include "simd.h"
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TILE = 1024, ZERO = 128, LINE = 64, AHEAD = 4096, MOST_AHEAD = 384 << 10, HALF = 8 };
/* As many rows at a time as there are registers for their sums. */
enum { SUMS = 8, MOST_ROWS = HAS_AVX512 ? SUMS : 3 };

typedef struct {
    const Weight *weight;
    const uint8_t *rows; /* num_rows, padded_inputs; ZERO stands for 0 */
    const float *scales; /* one per row */
    int64_t num_rows;
    void *out;
    int out_type;
} Product;

int has_amx;

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

static inline int64_t num_blocks(const Weight *w) { return (w->num_outputs + 15) / 16; }

/* --- 4 bits ----------------------------------------------------------------------------------- */

typedef struct {
    __m512i times, minus; /* for each of 16 outputs: its factor in both halves, HALF times it in all bytes */
} Factors;

static inline Factors factors_of(const uint8_t *factors) {
    __m512i factor = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)factors));
    __m512i both = _mm512_or_si512(factor, _mm512_slli_epi32(factor, 16));
    __m512i all = _mm512_or_si512(both, _mm512_slli_epi32(both, 8));
    return (Factors){both, _mm512_slli_epi32(all, 3)};
}

/* Products of 15 and 15 stay in their byte, so that one multiplication does for two bytes. */
static inline __m512i widened(__m512i nibbles, Factors f) {
    nibbles = _mm512_and_si512(nibbles, _mm512_set1_epi8(15));
    return _mm512_sub_epi8(_mm512_mullo_epi16(nibbles, f.times), f.minus);
}

static void unpack(const Weight *w, int64_t block, int64_t num_cols, int8_t *panel) {
    int64_t num_tiles = w->padded_inputs / 64 * num_cols;
    const int8_t *from = w->tiles + block * 8 * w->padded_inputs;
    const uint8_t *factors = w->factors + block * w->padded_inputs / 2;
    for (int64_t tile = 0; tile < num_tiles; tile++, from += TILE / 2, factors += 32, panel += TILE) {
        Factors low = factors_of(factors), high = factors_of(factors + 16);
        for (int line = 0; line < 8; line++) {
            _mm_prefetch(from + AHEAD / 2 + line * LINE, _MM_HINT_T0);
            __m512i nibbles = _mm512_load_si512(from + line * LINE);
            _mm512_store_si512(panel + line * LINE, widened(nibbles, low));
            _mm512_store_si512(panel + (line + 8) * LINE, widened(_mm512_srli_epi16(nibbles, 4), high));
        }
    }
}

/* The 8-bit tiles of one or two blocks of outputs: where they lie, or unpacked to `panel`. */
static inline const int8_t *tiles_of(const Weight *w, int64_t block, int num_cols, int8_t *panel) {
    if (!w->factors) return w->tiles + block * 16 * w->padded_inputs;
    unpack(w, block, num_cols, panel);
    return panel;
}

/* --- VNNI ------------------------------------------------------------------------------------- */

static inline __m512i total(const __m512i *sums) {
    return _mm512_add_epi32(_mm512_add_epi32(sums[0], sums[1]), _mm512_add_epi32(sums[2], sums[3]));
}

/* One row: memory is the limit, so four sums hide the latency and lines are asked for ahead. */
static void one_row(const Product *p, int64_t row, int64_t block, const int8_t *tiles) {
    const int32_t *fours = (const int32_t *)(p->rows + row * p->weight->padded_inputs);
    __m512i sums[4] = {0};
    for (int64_t four = 0; four < p->weight->padded_inputs / 4; four += 4) {
        const int8_t *lines = tiles + four * LINE;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            _mm_prefetch(lines + AHEAD + i * LINE, _MM_HINT_T0);
            __m512i weights = _mm512_load_si512(lines + i * LINE);
            sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_set1_epi32(fours[four + i]), weights);
        }
    }
    finish(p, row, block * 16, total(sums));
}

/* The same in 4 bits, from memory to the sums without a detour. */
#if HAS_VNNI
static void one_packed_row(const Product *p, int64_t row, int64_t block) {
    const Weight *w = p->weight;
    const int32_t *fours = (const int32_t *)(p->rows + row * w->padded_inputs);
    const int8_t *lines = w->tiles + block * 8 * w->padded_inputs;
    const uint8_t *factors = w->factors + block * w->padded_inputs / 2;
    __m512i sums[4] = {0};
    for (int64_t tile = 0; tile < w->padded_inputs / 64; tile++) {
        Factors low = factors_of(factors), high = factors_of(factors + 16);
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            _mm_prefetch(lines + AHEAD / 2 + i * LINE, _MM_HINT_T0);
            __m512i nibbles = _mm512_load_si512(lines + i * LINE);
            __m512i one = _mm512_set1_epi32(fours[i]), other = _mm512_set1_epi32(fours[i + 8]);
            sums[i % 2] = _mm512_dpbusd_epi32(sums[i % 2], one, widened(nibbles, low));
            nibbles = widened(_mm512_srli_epi16(nibbles, 4), high);
            sums[2 + i % 2] = _mm512_dpbusd_epi32(sums[2 + i % 2], other, nibbles);
        }
        lines += TILE / 2, factors += 32, fours += 16;
    }
    finish(p, row, block * 16, total(sums));
}
#else
/* Without VNNI: a group's factor comes behind the sum of its 32 inputs, for 16 products of 255 and -8 fit into 16 bits.
   So bytes are multiplied and added with half of what 8 bits take, and nothing is unpacked. */
static inline __attribute__((always_inline)) void packed_pass(const Product *p, int64_t row, int64_t block,
                                                              const int num_rows) {
    const Weight *w = p->weight;
    const int32_t *fours = (const int32_t *)(p->rows + row * w->padded_inputs);
    const int8_t *lines = w->tiles + block * 8 * w->padded_inputs;
    const uint8_t *factors = w->factors + block * w->padded_inputs / 2;
    const __m512i zero = _mm512_set1_epi8(HALF), ones = _mm512_set1_epi8(15);
    __m512i sums[SUMS] = {0};
    for (int64_t group = 0; group < w->padded_inputs / 32; group++) {
        __m512i here[SUMS];
        for (int r = 0; r < num_rows; r++) here[r] = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            if (group % 2 == 0) _mm_prefetch(lines + AHEAD / 2 + i * LINE, _MM_HINT_T0);
            __m512i weights = _mm512_load_si512(lines + i * LINE);
            if (group % 2) weights = _mm512_srli_epi16(weights, 4);
            weights = _mm512_sub_epi8(_mm512_and_si512(weights, ones), zero);
#pragma GCC unroll 4
            for (int r = 0; r < num_rows; r++) {
                __m512i inputs = _mm512_set1_epi32(fours[r * (w->padded_inputs / 4) + i]);
                here[r] = _mm512_add_epi16(here[r], _mm512_maddubs_epi16(inputs, weights));
            }
        }
        __m512i factor = factors_of(factors).times;
        for (int r = 0; r < num_rows; r++)
            sums[r] = _mm512_add_epi32(sums[r], _mm512_madd_epi16(here[r], factor));
        factors += 16, fours += 8;
        if (group % 2) lines += TILE / 2;
    }
    for (int r = 0; r < num_rows; r++) finish(p, row + r, block * 16, sums[r]);
}

static void packed_rows(const Product *p, int64_t block) {
    int64_t row = 0;
    for (; row + 4 <= p->num_rows; row += 4) packed_pass(p, row, block, 4);
    switch (p->num_rows - row) {
        case 3: packed_pass(p, row, block, 3); break;
        case 2: packed_pass(p, row, block, 2); break;
        case 1: packed_pass(p, row, block, 1); break;
    }
}
#endif

/* `ahead` is what comes next: lines of it are asked for while these are multiplied. */
static inline __attribute__((always_inline)) void some_rows(
    const Product *p, int64_t row, int64_t block, const int8_t *tiles, const int8_t *ahead,
    int64_t lines_ahead, const int num_rows) {
    int64_t width = p->weight->padded_inputs;
    const int32_t *fours = (const int32_t *)(p->rows + row * width);
    __m512i sums[SUMS][2] = {{{0}}};
    for (int64_t begin = 0; begin < width / 4; begin += 4) {
        for (int64_t i = 0; i < lines_ahead; i++, ahead += LINE) _mm_prefetch(ahead, _MM_HINT_T1);
#pragma GCC unroll 4
        for (int64_t four = begin; four < begin + 4; four++) {
            __m512i left = _mm512_load_si512(tiles + four * LINE);
            __m512i right = _mm512_load_si512(tiles + 16 * width + four * LINE);
#pragma GCC unroll 8
            for (int r = 0; r < num_rows; r++) {
                __m512i inputs = _mm512_set1_epi32(fours[r * (width / 4) + four]);
                sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], inputs, left);
                sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], inputs, right);
            }
        }
    }
    for (int r = 0; r < num_rows; r++)
        for (int c = 0; c < 2; c++) finish(p, row + r, (block + c) * 16, sums[r][c]);
}

/* Rows in passes of nearly one size, each of which brings its share of the next two blocks to the cache:
   else memory and multiplication would wait for one another. */
static void passes_by_vnni(const Product *p, int64_t block, const int8_t *tiles) {
    int64_t width = p->weight->padded_inputs, passes = (p->num_rows + MOST_ROWS - 1) / MOST_ROWS;
    int64_t lines = p->weight->factors ? 4 : 8; /* of two blocks, for 16 inputs */
    const int8_t *ahead = p->weight->tiles + (block + 2) * lines * 2 * width;
    if (32 * width > MOST_AHEAD) lines = 0;
    for (int64_t row = 0; passes; passes--) {
        int64_t num_rows = (p->num_rows - row + passes - 1) / passes;
        int64_t lines_ahead = (lines + passes - 1) / passes;
        switch (num_rows) {
            case 2: some_rows(p, row, block, tiles, ahead, lines_ahead, 2); break;
            case 3: some_rows(p, row, block, tiles, ahead, lines_ahead, 3); break;
            case 4: some_rows(p, row, block, tiles, ahead, lines_ahead, 4); break;
            case 5: some_rows(p, row, block, tiles, ahead, lines_ahead, 5); break;
            case 6: some_rows(p, row, block, tiles, ahead, lines_ahead, 6); break;
            case 7: some_rows(p, row, block, tiles, ahead, lines_ahead, 7); break;
            default: some_rows(p, row, block, tiles, ahead, lines_ahead, MOST_ROWS);
        }
        row += num_rows;
        lines -= lines_ahead;
        ahead += width / 16 * lines_ahead * LINE;
    }
}

static void rows_by_vnni(const Product *p, int64_t block, int num_cols, int8_t *panel) {
#if HAS_VNNI
    if (p->num_rows == 1 && p->weight->factors) {
        for (int c = 0; c < num_cols; c++) one_packed_row(p, 0, block + c);
        return;
    }
#else
    if (p->weight->factors) {
        for (int c = 0; c < num_cols; c++) packed_rows(p, block + c);
        return;
    }
#endif
    const int8_t *tiles = tiles_of(p->weight, block, num_cols, panel);
    if (num_cols == 2 && p->num_rows > 1) {
        passes_by_vnni(p, block, tiles);
        return;
    }
    for (int64_t row = 0; row < p->num_rows; row++)
        for (int c = 0; c < num_cols; c++)
            one_row(p, row, block + c, tiles + c * 16 * p->weight->padded_inputs);
}

/* --- AMX -------------------------------------------------------------------------------------- */

#ifdef __AMX_INT8__
/* Tiles 0 to 3 hold sums, 4 and 5 inputs (upper and lower rows), 6 and 7 weights. */
static void configure_for(int upper, int lower) {
    uint8_t rows[8] = {upper, upper, lower, lower, upper, lower, 16, 16};
    configure(rows);
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

static void rows_by_amx(const Product *p, int64_t row, const int8_t *left, int lower, int num_cols) {
    int64_t width = p->weight->padded_inputs;
    const int8_t *right = left + 16 * width;
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

static void blocks_by_amx(const Product *p, int64_t begin, int64_t end, int8_t *panel) {
    TileConfig before;
    _tile_storeconfig(&before);
    int was = -1;
    for (int64_t block = begin; block < end; block += 2) {
        int num_cols = block + 1 < end ? 2 : 1;
        const int8_t *tiles = tiles_of(p->weight, block, num_cols, panel);
        for (int64_t row = 0; row < p->num_rows; row += 32) {
            int64_t left = p->num_rows - row;
            int upper = left < 16 ? left : 16, lower = left <= 16 ? 0 : left < 32 ? left - 16 : 16;
            if (upper * 32 + lower != was) configure_for(upper, lower), was = upper * 32 + lower;
            rows_by_amx(p, row, tiles, lower, num_cols);
            store_sums(p, row, block, upper, lower, num_cols);
        }
    }
    restore(&before);
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

/* Whether bytes are multiplied by an instruction: else many rows are no quicker than in float32. */
int has_vnni(void) { return HAS_VNNI; }

/* weights: (outputs, inputs), from -8 to 7 -> tiles in 4 bits, which are HALF in both halves as they come. */
void pack_halves(const int8_t *weights, const Weight *w) {
    uint8_t *tiles = (uint8_t *)w->tiles;
    for (int64_t output = 0; output < w->num_outputs; output++)
        for (int64_t input = 0; input < w->num_inputs; input++) {
            int64_t tile = output / 16 * 8 * w->padded_inputs + input / 64 * (TILE / 2);
            uint8_t *at = tiles + tile + input % 32 / 4 * LINE + output % 16 * 4 + input % 4;
            int shift = input % 64 < 32 ? 0 : 4;
            *at = (*at & ~(15 << shift)) | (*weights++ + HALF) << shift;
        }
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

static void multiply(const Product *p, int8_t *panels, int num_threads) {
    int64_t pairs = (num_blocks(p->weight) + 1) / 2;
    int64_t panel_size = p->weight->factors ? 32 * p->weight->padded_inputs : 0;
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1)
    for (int64_t share = 0; share < num_threads; share++) {
        int64_t begin = share * pairs / num_threads * 2, end = (share + 1) * pairs / num_threads * 2;
        if (end > num_blocks(p->weight)) end = num_blocks(p->weight);
        int8_t *panel = panels + share * panel_size;
#ifdef __AMX_INT8__
        if (has_amx && p->num_rows > 1) {
            blocks_by_amx(p, begin, end, panel);
            continue;
        }
#endif
        for (int64_t block = begin; block < end; block += 2)
            rows_by_vnni(p, block, block + 1 < end ? 2 : 1, panel);
    }
}

void linear(const Weight *w, const void *rows, int64_t num_rows, int64_t row_bytes, int type,
            void *out, int out_type, int num_threads) {
    int64_t panels = w->factors ? num_threads * 32 * w->padded_inputs : 0;
    int8_t *panel = room(panels + num_rows * (w->padded_inputs + 4));
    uint8_t *quantized = (uint8_t *)panel + panels;
    float *scales = (float *)(quantized + num_rows * w->padded_inputs);
#pragma omp parallel for schedule(static) num_threads(num_threads) if (num_threads > 1 && num_rows > 15)
    for (int64_t row = 0; row < num_rows; row++)
        quantize_row((const char *)rows + row * row_bytes, w->num_inputs, w->padded_inputs, type,
                     quantized + row * w->padded_inputs, scales + row);
    Product product = {w, quantized, scales, num_rows, out, out_type};
    multiply(&product, panel, num_threads);
}
