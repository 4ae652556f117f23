/* What all kernels share: rows of bfloat16 or float32, sixteen values at a time. */
#pragma once
#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)
#define HAS_AVX512 1
#define HAS_VNNI 1
#elif defined(__AVX2__) && defined(__FMA__)
#define HAS_AVX512 0
#ifdef __AVXVNNI__
#define HAS_VNNI 1
#else
#define HAS_VNNI 0
#endif
#include "halves.h"
#else
#error "these kernels are written for AVX-512 with VNNI, and for AVX2"
#endif

enum { BFLOAT16 = 1, FLOAT32 = 0 };

static inline __mmask16 first(int64_t count) {
    return count >= 16 ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

static inline __m512 load16(const void *row, int64_t at, int type, __mmask16 mask) {
    if (type == FLOAT32) return _mm512_maskz_loadu_ps(mask, (const float *)row + at);
    __m256i halves = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)row + at);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* To the nearest bfloat16, ties to even; what is no number stays none. */
static inline __m256i to_bfloat16(__m512 values) {
    __m512i bits = _mm512_castps_si512(values);
    __m512i is_odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i half = _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7fff));
    __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, is_nan, _mm512_set1_epi32(0x7fc0)));
}

static inline void store16(void *row, int64_t at, int type, __mmask16 mask, __m512 values) {
    if (type == FLOAT32) _mm512_mask_storeu_ps((float *)row + at, mask, values);
    else _mm256_mask_storeu_epi16((uint16_t *)row + at, mask, to_bfloat16(values));
}

static inline int64_t bytes_of(int type) { return type == FLOAT32 ? 4 : 2; }

/* exp for values up to 0, of which those below -87 become 0: 2^whole times a polynomial on the rest. */
static inline __m512 exp16(__m512 x) {
    __mmask16 is_tiny = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_LT_OQ);
    __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
    __m512 rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0.693359375f), x);
    rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(-2.12194440e-4f), rest);
    __m512 sum = _mm512_set1_ps(1.9875691500e-4f); /* coefficients of Cephes' expf */
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.3981999507e-3f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(8.3334519073e-3f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(4.1665795894e-2f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.6666665459e-1f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(5.0000001201e-1f));
    sum = _mm512_fmadd_ps(sum, _mm512_mul_ps(rest, rest), rest);
    sum = _mm512_scalef_ps(_mm512_add_ps(sum, _mm512_set1_ps(1.0f)), whole);
    return _mm512_mask_mov_ps(sum, is_tiny, _mm512_setzero_ps());
}

/* Two to the power of values up to 0, of which those below -126 become 0, to 1e-7 of it: a polynomial of
   degree 5 for the fraction, fitted by least squares whose weights follow the error (Lawson 1961). */
static inline __m512 power16(__m512 x) {
    __mmask16 is_normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
    __m512 whole = _mm512_roundscale_ps(x, 0), rest = _mm512_sub_ps(x, whole);
    __m512 sum = _mm512_set1_ps(1.32647273e-3f);
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(9.67151299e-3f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(5.55073358e-2f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(2.40222424e-1f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(6.93147004e-1f));
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.0f));
    return _mm512_maskz_scalef_ps(is_normal, sum, whole);
}
