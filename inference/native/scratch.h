/* Scratch memory that grows and is kept, one for each file that includes this: one caller at a time. */
#pragma once
#include <stdint.h>
#include <stdlib.h>

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
