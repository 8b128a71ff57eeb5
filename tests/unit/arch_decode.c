/*
 * Instructions, as the assembler writes them: each has to be as long as the assembler made it, and to continue where it
 * says. A row for each letter of the decoder's tables, and for each way to address memory.
 */
#include "../../src/arch/decode.h"
#include "arch_check.h"

#include <string.h>

/* Each instruction's address goes to a list. */
#define I(text) "9: " text "\n.pushsection .data.rel.ro, \"aw\"\n.quad 9b\n.popsection\n"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings" /* the assembler has no such limit */
__asm__(".pushsection .data.rel.ro, \"aw\"\n.globl decode_list\ndecode_list:\n.popsection\n.text\n"
        /* ModRM: registers, memory by register, with distances, by SIB, relative to the instruction */
        I("mov %rax, %rbx") I("mov (%rax), %rbx") I("mov 8(%rax), %ebx") I("mov 512(%rbp), %rbx") I("mov (%rsp), %rbx")
            I("mov 8(%rsp), %rbx") I("mov 512(%r12), %bx") I("mov (, %rcx, 8), %rbx") I("mov (%rax, %rcx, 2), %rbx")
                I("mov 0(%r13, %rcx, 2), %rbx") I("lea decode_list(%rip), %rax") I("mov %fs:0x28, %rax")
                    I("lock incl (%rax)") I("movb $1, (%rsp)") I("movw $1, decode_list(%rip)") I("movl $1, 8(%rsp)")
                        I("movq $1, 512(%rsp)")
        /* numbers behind the opcode */
        I("add $1, %al") I("add $0x1234, %ax") I("add $0x12345678, %eax") I("add $1, %rsp") I("sub $512, %rsp")
            I("push $1") I("push $512") I("imul $512, %rax, %rbx") I("imul $5, %rax, %rbx") I("mov $1, %al")
                I("mov $0x1234, %cx") I("mov $1, %ecx") I("movabs $0x123456789, %r11") I("movabs %al, 0x123456789")
                    I("test $1, %al") I("test $512, %eax") I("testb $1, (%rax)") I("testw $1, (%rax)")
                        I("testl $1, 4(%rax)") I("notl (%rax)") I("notb (%rax)") I("enter $8, $0") I("shl $3, %rax")
                            I("shl %rax") I("in $1, %al")
        /* other maps */
        I("push %r12") I("cltq") I("endbr64") I("nopw 512(%rax, %rax)") I("cs nopw 0(%rax, %rax)") I("syscall")
            I("movzbl (%rax), %ecx") I("shld $3, %rax, %rbx") I("bt $3, %rax") I("bswap %rax") I("cmove %rax, %rbx")
                I("movaps %xmm0, (%rsp)") I("pshufd $1, %xmm0, %xmm1") I("pshufb %xmm0, %xmm1")
                    I("palignr $4, %xmm0, %xmm1") I("movdqu 16(%rax), %xmm9") I("psrldq $8, %xmm0")
                        I("cvtsi2sd %rax, %xmm0") I("fstpt 16(%rsp)") I("rep stosq") I("vzeroupper")
                            I("vmovdqu (%rax), %ymm1") I("vpshufd $1, %ymm0, %ymm1") I("vpshufb %ymm0, %ymm9, %ymm1")
                                I("vpalignr $4, %ymm0, %ymm1, %ymm2") I("andn %rax, %rbx, %rcx")
                                    I("vmovdqu64 64(%rax), %zmm17") I("vpternlogd $255, %zmm0, %zmm1, %zmm2")
                                        I("vpaddd %zmm0, %zmm1, %zmm2")
        /* calls, branches and jumps */
        I("call decode_there") I("je 8f") I("jne decode_there") I("jrcxz 8f") I("8: jmp 8f") I("jmp decode_there")
            I("8: call *%rax") I("call *8(%rax)") I("call *decode_list(%rip)") I("jmp *decode_list(%rip)")
                I("jmp *%rax") I("ret") I("ud2") I("ud1l 2(%eax), %eax")
                    I(".byte 0x0f, 0xff, 0x40, 8") /* ud0 8(%rax), %eax, which clang does not know */ I("int3")
                        I("hlt") ".globl decode_there\ndecode_there: ret\n"
                                 ".pushsection .data.rel.ro, \"aw\"\n.quad decode_there\n.globl "
                                 "decode_list_end\ndecode_list_end:\n.popsection\n");
#pragma GCC diagnostic pop

extern const uint8_t *const decode_list[], *const decode_list_end[];
extern const uint8_t decode_there[];

enum { LAST = 17 };

/* The last ones, in the order of the list. */
static const struct {
    enum arch_way way;
    bool there, word;
} last[LAST] = {
    {ARCH_CALLS, true, false},     {ARCH_BRANCHES, false, false}, {ARCH_BRANCHES, true, false},
    {ARCH_BRANCHES, false, false}, {ARCH_JUMPS, false, false},    {ARCH_JUMPS, true, false},
    {ARCH_CALLS, false, false},    {ARCH_CALLS, false, false},    {ARCH_CALLS, false, true},
    {ARCH_JUMPS, false, true},     {ARCH_ENDS, false, false},     {ARCH_ENDS, false, false},
    {ARCH_TRAPS, false, false},    {ARCH_TRAPS, false, false},    {ARCH_TRAPS, false, false},
    {ARCH_TRAPS, false, false},    {ARCH_TRAPS, false, false},
};

static void check_unknown(const char *code, size_t size)
{
    struct arch_instruction instruction;
    uint8_t padded[16] = {0};
    memcpy(padded, code, size);
    CHECK(!arch_decode(padded, &instruction));
}

int main(void)
{
    size_t count = (size_t)(decode_list_end - decode_list) - 1;
    for (size_t i = 0; i < count; i++) {
        struct arch_instruction at;
        CHECK(arch_decode(decode_list[i], &at));
        CHECK_EQUAL(at.next - decode_list[i], decode_list[i + 1] - decode_list[i]);
        bool is_last = i >= count - LAST;
        CHECK_EQUAL(at.way, is_last ? last[i - (count - LAST)].way : ARCH_GOES_ON);
        if (is_last && last[i - (count - LAST)].there)
            CHECK(at.target == decode_there);
        CHECK(!at.word == !(is_last && last[i - (count - LAST)].word));
        if (at.word)
            CHECK(at.word == (const void *)decode_list);
    }
    check_unknown("\x06", 1);
    check_unknown("\x0f\x04", 2);
    check_unknown("\xea", 1);
    return failures != 0;
}
