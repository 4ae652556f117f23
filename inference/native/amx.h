/* AMX: eight tiles of sixteen rows of 64 bytes. */
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

extern int has_amx; /* and may be used; see begin() */

#ifdef __AMX_INT8__
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} __attribute__((packed)) TileConfig;

/* Rows of the eight tiles; 0 counts as 1. */
static inline void configure(const uint8_t rows[8]) {
    TileConfig config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 8; i++) config.rows[i] = rows[i] ? rows[i] : 1, config.bytes_per_row[i] = 64;
    __asm__ volatile("" ::"m"(config) : "memory"); /* gcc 12 may load it before it is written */
    _tile_loadconfig(&config);
}

/* oneDNN configures tiles too, and relies on what it has set. */
static inline void restore(const TileConfig *before) {
    if (before->palette) _tile_loadconfig(before);
    else _tile_release();
}
#endif
