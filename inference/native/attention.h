/* Attention over slabs of keys and values: see attention.c. */
#pragma once
#include <stdint.h>

typedef struct {
    void *keys, *values; /* kv_heads, room, dim; `room` may differ between sequences */
    int64_t room;
    int64_t start;   /* tokens that are there already */
    int64_t num_new; /* tokens of this step */
    int64_t packed;  /* where these begin among all tokens of the step */
    int64_t each_alone; /* whether each is to be rounded as if it came by itself */
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

void attend(const Attention *a, const Span *spans, int64_t num_spans, int num_threads);
