/* AVX-512's sixteen lanes as two halves of AVX2's eight, for the functions of it that these kernels call: so
   each kernel is written once. What has no instruction here (masks, compression, products of bytes) is made of
   some; what is exact there is exact here. */
#pragma once

typedef struct { __m256 low, high; } Floats;
typedef struct { __m256i low, high; } Wholes;
typedef struct { __m256d low, high; } Doubles;

#define __m512 Floats
#define __m512i Wholes
#define __m512d Doubles

#define ONE(type, name, f, from) \
    static inline type name(from a) { return (type){f(a.low), f(a.high)}; }
#define TWO(type, name, f, from) \
    static inline type name(from a, from b) { return (type){f(a.low, b.low), f(a.high, b.high)}; }
#define THREE(name, f) \
    static inline Floats name(Floats a, Floats b, Floats c) { \
        return (Floats){f(a.low, b.low, c.low), f(a.high, b.high, c.high)}; \
    }

TWO(Floats, halves_add_ps, _mm256_add_ps, Floats)
TWO(Floats, halves_sub_ps, _mm256_sub_ps, Floats)
TWO(Floats, halves_mul_ps, _mm256_mul_ps, Floats)
TWO(Floats, halves_div_ps, _mm256_div_ps, Floats)
TWO(Floats, halves_max_ps, _mm256_max_ps, Floats)
TWO(Floats, halves_unpacklo_ps, _mm256_unpacklo_ps, Floats)
TWO(Floats, halves_unpackhi_ps, _mm256_unpackhi_ps, Floats)
TWO(Doubles, halves_unpacklo_pd, _mm256_unpacklo_pd, Doubles)
TWO(Doubles, halves_unpackhi_pd, _mm256_unpackhi_pd, Doubles)
THREE(halves_fmadd_ps, _mm256_fmadd_ps)
THREE(halves_fnmadd_ps, _mm256_fnmadd_ps)
TWO(Wholes, halves_add_epi32, _mm256_add_epi32, Wholes)
TWO(Wholes, halves_sub_epi32, _mm256_sub_epi32, Wholes)
TWO(Wholes, halves_sub_epi8, _mm256_sub_epi8, Wholes)
TWO(Wholes, halves_mullo_epi32, _mm256_mullo_epi32, Wholes)
TWO(Wholes, halves_mullo_epi16, _mm256_mullo_epi16, Wholes)
TWO(Wholes, halves_add_epi16, _mm256_add_epi16, Wholes)
TWO(Wholes, halves_madd_epi16, _mm256_madd_epi16, Wholes)
TWO(Wholes, halves_maddubs_epi16, _mm256_maddubs_epi16, Wholes)
TWO(Wholes, halves_and_si512, _mm256_and_si256, Wholes)
TWO(Wholes, halves_or_si512, _mm256_or_si256, Wholes)
TWO(Wholes, halves_xor_si512, _mm256_xor_si256, Wholes)
ONE(Wholes, halves_castps_si512, _mm256_castps_si256, Floats)
ONE(Floats, halves_castsi512_ps, _mm256_castsi256_ps, Wholes)
ONE(Doubles, halves_castps_pd, _mm256_castps_pd, Floats)
ONE(Floats, halves_castpd_ps, _mm256_castpd_ps, Doubles)
ONE(Floats, halves_cvtepi32_ps, _mm256_cvtepi32_ps, Wholes)
ONE(Wholes, halves_cvtps_epi32, _mm256_cvtps_epi32, Floats)

static inline Floats halves_set1_ps(float value) { return (Floats){_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
static inline Floats halves_setzero_ps(void) { return (Floats){_mm256_setzero_ps(), _mm256_setzero_ps()}; }
static inline Wholes halves_set1_epi32(int value) { return (Wholes){_mm256_set1_epi32(value), _mm256_set1_epi32(value)}; }
static inline Wholes halves_set1_epi8(char value) { return (Wholes){_mm256_set1_epi8(value), _mm256_set1_epi8(value)}; }
static inline Wholes halves_setzero_si512(void) { return (Wholes){_mm256_setzero_si256(), _mm256_setzero_si256()}; }

static inline Floats halves_load_ps(const float *from) {
    return (Floats){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

static inline void halves_store_ps(float *to, Floats a) {
    _mm256_storeu_ps(to, a.low);
    _mm256_storeu_ps(to + 8, a.high);
}

static inline Wholes halves_load_si512(const void *from) {
    const __m256i *halves = from;
    return (Wholes){_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}

static inline void halves_store_si512(void *to, Wholes a) {
    __m256i *halves = to;
    _mm256_storeu_si256(halves, a.low);
    _mm256_storeu_si256(halves + 1, a.high);
}

static inline Wholes halves_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k,
                                       int l, int m, int n, int o, int p) {
    return (Wholes){_mm256_setr_epi32(a, b, c, d, e, f, g, h), _mm256_setr_epi32(i, j, k, l, m, n, o, p)};
}

static inline Wholes halves_slli_epi32(Wholes a, int count) {
    return (Wholes){_mm256_slli_epi32(a.low, count), _mm256_slli_epi32(a.high, count)};
}

static inline Wholes halves_srli_epi32(Wholes a, int count) {
    return (Wholes){_mm256_srli_epi32(a.low, count), _mm256_srli_epi32(a.high, count)};
}

static inline Wholes halves_srli_epi16(Wholes a, int count) {
    return (Wholes){_mm256_srli_epi16(a.low, count), _mm256_srli_epi16(a.high, count)};
}

static inline Floats halves_abs_ps(Floats a) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (Floats){_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}

static inline __m256 halves_castps512_ps256(Floats a) { return a.low; }
static inline __m128 halves_castps512_ps128(Floats a) { return _mm256_castps256_ps128(a.low); }
static inline Floats halves_castps128_ps512(__m128 a) { return (Floats){_mm256_castps128_ps256(a), _mm256_setzero_ps()}; }
#define halves_extractf32x8_ps(a, which) ((which) ? (a).high : (a).low)

static inline Floats halves_broadcast_f32x4(__m128 a) {
    __m256 twice = _mm256_set_m128(a, a);
    return (Floats){twice, twice};
}

/* --- masks: a bit for each lane --------------------------------------------------------------- */

static inline __m256i lanes_of(int bits) {
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits), each), each);
}

#define halves_cmp_ps_mask(a, b, how) \
    ((__mmask16)(_mm256_movemask_ps(_mm256_cmp_ps((a).low, (b).low, how)) | \
                 _mm256_movemask_ps(_mm256_cmp_ps((a).high, (b).high, how)) << 8))
#define halves_mask_cmp_ps_mask(mask, a, b, how) ((__mmask16)((mask) & halves_cmp_ps_mask(a, b, how)))

static inline Floats halves_mask_mov_ps(Floats a, __mmask16 mask, Floats b) {
    return (Floats){_mm256_blendv_ps(a.low, b.low, _mm256_castsi256_ps(lanes_of(mask))),
                    _mm256_blendv_ps(a.high, b.high, _mm256_castsi256_ps(lanes_of(mask >> 8)))};
}

static inline Wholes halves_mask_mov_epi32(Wholes a, __mmask16 mask, Wholes b) {
    return (Wholes){_mm256_blendv_epi8(a.low, b.low, lanes_of(mask)), _mm256_blendv_epi8(a.high, b.high, lanes_of(mask >> 8))};
}

/* Nothing is touched where there is no bit: the row may end there. */
static inline Floats halves_maskz_loadu_ps(__mmask16 mask, const float *from) {
    if (mask == 0xffff) return halves_load_ps(from);
    return (Floats){_mm256_maskload_ps(from, lanes_of(mask)), _mm256_maskload_ps(from + 8, lanes_of(mask >> 8))};
}

static inline Floats halves_mask_loadu_ps(Floats other, __mmask16 mask, const float *from) {
    if (mask == 0xffff) return halves_load_ps(from);
    return halves_mask_mov_ps(other, mask, halves_maskz_loadu_ps(mask, from));
}

static inline void halves_mask_storeu_ps(float *to, __mmask16 mask, Floats a) {
    if (mask == 0xffff) {
        halves_store_ps(to, a);
        return;
    }
    _mm256_maskstore_ps(to, lanes_of(mask), a.low);
    _mm256_maskstore_ps(to + 8, lanes_of(mask >> 8), a.high);
}

static inline __m256i halves_maskz_loadu_epi16(__mmask16 mask, const uint16_t *from) {
    if (mask == 0xffff) return _mm256_loadu_si256((const __m256i *)from);
    uint16_t some[16] = {0};
    for (int lane = 0; lane < 16; lane++)
        if (mask >> lane & 1) some[lane] = from[lane];
    return _mm256_loadu_si256((const __m256i *)some);
}

static inline void halves_mask_storeu_epi16(uint16_t *to, __mmask16 mask, __m256i a) {
    if (mask == 0xffff) {
        _mm256_storeu_si256((__m256i *)to, a);
        return;
    }
    uint16_t some[16];
    _mm256_storeu_si256((__m256i *)some, a);
    for (int lane = 0; lane < 16; lane++)
        if (mask >> lane & 1) to[lane] = some[lane];
}

static inline Wholes halves_maskz_compress_epi32(__mmask16 mask, Wholes a) {
    if (mask == 0xffff) return a;
    int32_t from[16], to[16] = {0};
    halves_store_si512(from, a);
    for (int count = 0; mask; mask &= mask - 1) to[count++] = from[__builtin_ctz(mask)];
    return halves_load_si512(to);
}

static inline Floats halves_maskz_compress_ps(__mmask16 mask, Floats a) {
    return halves_castsi512_ps(halves_maskz_compress_epi32(mask, halves_castps_si512(a)));
}

static inline int halves_mask_reduce_min_epi32(__mmask16 mask, Wholes a) {
    int32_t each[16], least = INT32_MAX;
    halves_store_si512(each, a);
    for (; mask; mask &= mask - 1) {
        int32_t one = each[__builtin_ctz(mask)];
        least = one < least ? one : least;
    }
    return least;
}

/* --- across lanes, and from type to type ------------------------------------------------------ */

static inline float halves_reduce_add_ps(Floats a) {
    __m256 eight = _mm256_add_ps(a.low, a.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

static inline float halves_reduce_max_ps(Floats a) {
    __m256 eight = _mm256_max_ps(a.low, a.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

static inline Wholes halves_cvtepu16_epi32(__m256i a) {
    return (Wholes){_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))};
}

static inline Wholes halves_cvtepu8_epi32(__m128i a) {
    return (Wholes){_mm256_cvtepu8_epi32(a), _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8))};
}

/* Of lanes from 0 to 65535, which are all that is asked for. */
static inline __m256i halves_cvtepi32_epi16(Wholes a) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(a.low, a.high), 0xd8);
}

/* Of lanes from 0 to 255, likewise; those of a broken row are not looked at. */
static inline __m128i halves_cvtepi32_epi8(Wholes a) {
    __m256i words = halves_cvtepi32_epi16(a);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

/* Rounded once: both halves of the bits are exact. */
static inline Floats halves_cvtepu32_ps(Wholes a) {
    Floats top = halves_cvtepi32_ps(halves_srli_epi32(a, 16));
    Floats rest = halves_cvtepi32_ps(halves_and_si512(a, halves_set1_epi32(0xffff)));
    return halves_fmadd_ps(top, halves_set1_ps(65536.0f), rest);
}

#define halves_roundscale_ps(a, zero) \
    ((Floats){_mm256_round_ps((a).low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), \
              _mm256_round_ps((a).high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)})

/* a times two to the power of whole numbers from -126 to 127. */
static inline Floats halves_scalef_ps(Floats a, Floats whole) {
    Wholes exponent = halves_add_epi32(halves_cvtps_epi32(whole), halves_set1_epi32(127));
    return halves_mul_ps(a, halves_castsi512_ps(halves_slli_epi32(exponent, 23)));
}

static inline Floats halves_maskz_scalef_ps(__mmask16 mask, Floats a, Floats whole) {
    return halves_mask_mov_ps(halves_setzero_ps(), mask, halves_scalef_ps(a, whole));
}

/* Sums of four products of bytes. Even and odd ones as 16 bits, where nothing saturates (VPMADDUBSW would); what
   is done to the weights is done once for all rows that share them. */
static inline __m256i dot_half(__m256i sums, __m256i inputs, __m256i weights) {
#if HAS_VNNI
    return _mm256_dpbusd_avx_epi32(sums, inputs, weights);
#else
    __m256i even = _mm256_and_si256(inputs, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(inputs, 8);
    __m256i even_weights = _mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8);
    __m256i odd_weights = _mm256_srai_epi16(weights, 8);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(even, even_weights));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(odd, odd_weights));
#endif
}

static inline Wholes halves_dpbusd_epi32(Wholes sums, Wholes inputs, Wholes weights) {
    return (Wholes){dot_half(sums.low, inputs.low, weights.low), dot_half(sums.high, inputs.high, weights.high)};
}

/* --- under the names of AVX-512 --------------------------------------------------------------- */

#define _mm512_abs_ps halves_abs_ps
#define _mm512_add_epi16 halves_add_epi16
#define _mm512_add_epi32 halves_add_epi32
#define _mm512_madd_epi16 halves_madd_epi16
#define _mm512_maddubs_epi16 halves_maddubs_epi16
#define _mm512_add_ps halves_add_ps
#define _mm512_and_si512 halves_and_si512
#define _mm512_broadcast_f32x4 halves_broadcast_f32x4
#define _mm512_castpd_ps halves_castpd_ps
#define _mm512_castps128_ps512 halves_castps128_ps512
#define _mm512_castps512_ps128 halves_castps512_ps128
#define _mm512_castps512_ps256 halves_castps512_ps256
#define _mm512_castps_pd halves_castps_pd
#define _mm512_castps_si512 halves_castps_si512
#define _mm512_castsi512_ps halves_castsi512_ps
#define _mm512_cmp_ps_mask halves_cmp_ps_mask
#define _mm512_cvtepi32_epi16 halves_cvtepi32_epi16
#define _mm512_cvtepi32_epi8 halves_cvtepi32_epi8
#define _mm512_cvtepi32_ps halves_cvtepi32_ps
#define _mm512_cvtepu16_epi32 halves_cvtepu16_epi32
#define _mm512_cvtepu32_ps halves_cvtepu32_ps
#define _mm512_cvtepu8_epi32 halves_cvtepu8_epi32
#define _mm512_cvtps_epi32 halves_cvtps_epi32
#define _mm512_div_ps halves_div_ps
#define _mm512_dpbusd_epi32 halves_dpbusd_epi32
#define _mm512_extractf32x8_ps halves_extractf32x8_ps
#define _mm512_fmadd_ps halves_fmadd_ps
#define _mm512_fnmadd_ps halves_fnmadd_ps
#define _mm512_load_ps halves_load_ps
#define _mm512_loadu_ps halves_load_ps
#define _mm512_load_si512 halves_load_si512
#define _mm512_loadu_si512 halves_load_si512
#define _mm512_mask_cmp_ps_mask halves_mask_cmp_ps_mask
#define _mm512_mask_loadu_ps halves_mask_loadu_ps
#define _mm512_mask_mov_epi32 halves_mask_mov_epi32
#define _mm512_mask_mov_ps halves_mask_mov_ps
#define _mm512_mask_reduce_min_epi32 halves_mask_reduce_min_epi32
#define _mm256_mask_storeu_epi16 halves_mask_storeu_epi16
#define _mm512_mask_storeu_ps halves_mask_storeu_ps
#define _mm512_maskz_compress_epi32 halves_maskz_compress_epi32
#define _mm512_maskz_compress_ps halves_maskz_compress_ps
#define _mm256_maskz_loadu_epi16 halves_maskz_loadu_epi16
#define _mm512_maskz_loadu_ps halves_maskz_loadu_ps
#define _mm512_maskz_scalef_ps halves_maskz_scalef_ps
#define _mm512_max_ps halves_max_ps
#define _mm512_mul_ps halves_mul_ps
#define _mm512_mullo_epi16 halves_mullo_epi16
#define _mm512_mullo_epi32 halves_mullo_epi32
#define _mm512_or_si512 halves_or_si512
#define _mm512_reduce_add_ps halves_reduce_add_ps
#define _mm512_reduce_max_ps halves_reduce_max_ps
#define _mm512_roundscale_ps halves_roundscale_ps
#define _mm512_scalef_ps halves_scalef_ps
#define _mm512_set1_epi32 halves_set1_epi32
#define _mm512_set1_epi8 halves_set1_epi8
#define _mm512_set1_ps halves_set1_ps
#undef _mm512_setr_epi32 /* a macro of GCC */
#define _mm512_setr_epi32 halves_setr_epi32
#define _mm512_setzero_ps halves_setzero_ps
#define _mm512_setzero_si512 halves_setzero_si512
#define _mm512_slli_epi32 halves_slli_epi32
#define _mm512_srli_epi16 halves_srli_epi16
#define _mm512_srli_epi32 halves_srli_epi32
#define _mm512_store_ps halves_store_ps
#define _mm512_storeu_ps halves_store_ps
#define _mm512_store_si512 halves_store_si512
#define _mm512_storeu_si512 halves_store_si512
#define _mm512_sub_epi32 halves_sub_epi32
#define _mm512_sub_epi8 halves_sub_epi8
#define _mm512_sub_ps halves_sub_ps
#define _mm512_unpackhi_pd halves_unpackhi_pd
#define _mm512_unpackhi_ps halves_unpackhi_ps
#define _mm512_unpacklo_pd halves_unpacklo_pd
#define _mm512_unpacklo_ps halves_unpacklo_ps
#define _mm512_xor_si512 halves_xor_si512
