/*
 * What sanitizers and valgrind have to be told about stacks, switches and order. Empty inlines in ordinary builds; no #if
 * at the calls. The order at a switch: arch_note_leave on the old stack, the jump, arch_note_arrive on the new one.
 * Included by arch.h only.
 */
#ifndef ARCH_NOTES_H
#define ARCH_NOTES_H

/* TO BE COMPLETED by src/arch */
struct arch_note {
    void *unused;
};
#define ARCH_NOTES_SEPARATE 0
#define ARCH_NOTES_MEMBARRIER 1
#define ARCH_NOTES_HANDLES ((size_t)1 << 40)
static inline void arch_note_thread(struct arch_note *n) { (void)n; }
static inline void arch_note_make(struct arch_note *n, char *low, size_t size) { (void)n, (void)low, (void)size; }
static inline void arch_note_end(struct arch_note *n) { (void)n; }
static inline void arch_note_leave(struct arch_note *from, struct arch_note *to, bool ends) { (void)from, (void)to, (void)ends; }
static inline void arch_note_arrive(struct arch_note *to) { (void)to; }
static inline void arch_note_suspended(struct arch_note *n, arch_context context) { (void)n, (void)context; }
static inline void arch_note_resumed(struct arch_note *n) { (void)n; }
static inline void arch_note_release(void *p) { (void)p; }
static inline void arch_note_acquire(void *p) { (void)p; }
#endif
