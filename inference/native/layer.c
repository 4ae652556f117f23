/* A whole decoder layer of the Llama kind in one call, for steps of few tokens: what Python and torch need
   to call its operations one by one takes as long as a third of the products.

   The operations are those of the other files, in their order and with their rounding, so that a token comes
   out the same as by calling them one by one. One caller at a time: scratch memory is shared. */
#include "attention.h"
#include "linear.h"
#include "rows.h"
#include "scratch.h"
#include "simd.h"
#include <string.h>

typedef struct {
    const Weight *projections, *output, *gates, *down; /* of query, key and value; of gate and up */
    const void *norm, *second_norm, *query_norm, *key_norm; /* weights; the last two may be NULL */
    int64_t number; /* of the layer among those whose slabs a sequence names */
    int64_t width, num_heads, num_kv_heads, dim, inner;
    float epsilon, second_epsilon, query_epsilon, key_epsilon, scale;
    int type;
} Layer;

typedef struct {
    void *keys, *values;
    int64_t room;
} Slab;

typedef struct { /* a sequence's part of a step: see Span */
    const Slab *slabs; /* one for each layer */
    int64_t start, num_new, packed, each_alone;
} Part;

static void add(void *sums, const void *values, int64_t count, int type) {
    for (int64_t at = 0; at < count; at += 16) {
        __mmask16 mask = first(count - at);
        store16(sums, at, type, mask, _mm512_add_ps(load16(sums, at, type, mask), load16(values, at, type, mask)));
    }
}

static void copy(void *to, const void *from, int64_t count, int type) {
    memcpy(to, from, count * bytes_of(type));
}

static char *behind(void *base, int64_t values, int type) { return (char *)base + values * bytes_of(type); }

/* rows: (tokens, stride), heads in front of each -> the same place. */
static void norm_heads(char *rows, const void *weight, float epsilon, int64_t num_tokens, int64_t stride,
                       int64_t num_heads, int64_t dim, int type) {
    for (int64_t token = 0; weight && token < num_tokens; token++) {
        char *row = behind(rows, token * stride, type);
        rms_norm(row, weight, row, num_heads, dim, epsilon, type, 1);
    }
}

/* rows: (tokens, width) -> out, likewise; cosines and sines: (tokens, dim). */
void decode_layer(const Layer *l, const void *rows, void *out, int64_t num_tokens, const void *cosines,
                  const void *sines, const Part *parts, int64_t num_parts, int num_threads) {
    const int type = l->type;
    int64_t heads = l->num_heads * l->dim, kv_heads = l->num_kv_heads * l->dim, all = heads + 2 * kv_heads;
    int64_t row_bytes = l->width * bytes_of(type);
    int64_t most = 2 * l->inner > all ? 2 * l->inner : all;
    int64_t values = num_tokens * (l->width + most + 2 * heads + kv_heads + l->inner);
    Span *spans = room(num_parts * sizeof(Span) + values * bytes_of(type));
    char *normed = (char *)(spans + num_parts), *wide = behind(normed, num_tokens * l->width, type);
    char *query = behind(wide, num_tokens * most, type), *key = behind(query, num_tokens * heads, type);
    char *attended = behind(key, num_tokens * kv_heads, type);
    char *gated = behind(attended, num_tokens * heads, type);

    rms_norm(rows, l->norm, normed, num_tokens, l->width, l->epsilon, type, num_threads);
    linear(l->projections, normed, num_tokens, row_bytes, type, wide, type, num_threads);
    char *key_rows = behind(wide, heads, type);
    norm_heads(wide, l->query_norm, l->query_epsilon, num_tokens, all, l->num_heads, l->dim, type);
    norm_heads(key_rows, l->key_norm, l->key_epsilon, num_tokens, all, l->num_kv_heads, l->dim, type);
    rotate(wide, l->dim, all, cosines, sines, query, l->num_heads, num_tokens, l->dim, type, num_threads);
    rotate(key_rows, l->dim, all, cosines, sines, key, l->num_kv_heads, num_tokens, l->dim, type, num_threads);
    for (int64_t i = 0; i < num_parts; i++) {
        const Part *p = parts + i;
        Slab slab = p->slabs[l->number];
        spans[i] = (Span){slab.keys, slab.values, slab.room, p->start, p->num_new, p->packed, p->each_alone};
    }
    Attention attention = {
        query, key, behind(wide, heads + kv_heads, type), attended,
        l->dim, heads, l->dim, kv_heads, l->dim, all,
        l->num_heads, l->num_kv_heads, l->dim, l->dim, 0, l->scale, type,
    };
    attend(&attention, spans, num_parts, num_threads);
    linear(l->output, attended, num_tokens, heads * bytes_of(type), type, normed, type, num_threads);
    copy(out, rows, num_tokens * l->width, type);
    add(out, normed, num_tokens * l->width, type);

    rms_norm(out, l->second_norm, normed, num_tokens, l->width, l->second_epsilon, type, num_threads);
    linear(l->gates, normed, num_tokens, row_bytes, type, wide, type, num_threads);
    silu_mul(wide, gated, num_tokens, l->inner, type, num_threads);
    linear(l->down, gated, num_tokens, l->inner * bytes_of(type), type, normed, type, num_threads);
    add(out, normed, num_tokens * l->width, type);
}
