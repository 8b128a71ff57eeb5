/*
 * Kinds of frames that an exception may pass, of one optimisation level: included by unwinding.c for several, each time
 * with another FRAMES(name). Each notes what its clean-ups see of its variables, its arguments and its stack.
 */
static NOINLINE uint64_t FRAMES(go)(int depth, uint64_t a);
static NOINLINE uint64_t FRAMES(leaf)(uint64_t a);

static NOINLINE uint64_t FRAMES(passes)(int depth, uint64_t a)
{
    return FRAMES(go)(depth, a + 1) + 1;
}

static NOINLINE uint64_t FRAMES(one_guard)(int depth, uint64_t a)
{
    struct guard g __attribute__((cleanup(close_guard))) = {1, a};
    return FRAMES(go)(depth, a * 3) + g.value;
}

static NOINLINE uint64_t FRAMES(nested_guards)(int depth, uint64_t a)
{
    struct guard g __attribute__((cleanup(close_guard))) = {2, a};
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        struct guard h __attribute__((cleanup(close_guard))) = {3, a + (uint64_t)i};
        sum += FRAMES(go)(depth, a + sum);
    }
    return sum;
}

/* The landing pad reads registers that the callees have saved. */
static NOINLINE uint64_t FRAMES(registers)(int depth, uint64_t a)
{
    uint64_t b = a * 5 + pick(9), c = b * 7 + pick(9), d = c * 11 + pick(9), e = d * 13 + pick(9), f = e + pick(9);
    struct guard g __attribute__((cleanup(close_inline))) = {4, b};
    struct guard h __attribute__((cleanup(close_inline))) = {5, c};
    struct guard i __attribute__((cleanup(close_inline))) = {6, d};
    struct guard j __attribute__((cleanup(close_inline))) = {7, e};
    struct guard k __attribute__((cleanup(close_inline))) = {8, f};
    uint64_t result = FRAMES(go)(depth, a);
    return result + b + c + d + e + f;
}

static NOINLINE uint64_t FRAMES(variable_array)(int depth, uint64_t a)
{
    size_t size = 1 + pick(300);
    unsigned char bytes[size];
    memset(bytes, (int)a, size);
    struct buffer buffer __attribute__((cleanup(check_buffer), unused)) = {bytes, size, (unsigned char)a};
    return FRAMES(go)(depth, a + size);
}

static NOINLINE uint64_t FRAMES(aligned)(int depth, uint64_t a)
{
    struct aligned_guard g __attribute__((cleanup(check_aligned))) = {a};
    return FRAMES(go)(depth, a + 2) + g.value;
}

static NOINLINE uint64_t FRAMES(ten)(int depth, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                                     uint64_t g, uint64_t h, uint64_t i)
{
    struct guard k __attribute__((cleanup(close_guard), unused)) = {9, b + c + d + e + f + g + h + i};
    return FRAMES(go)(depth, a) + i;
}

static NOINLINE uint64_t FRAMES(arguments_on_the_stack)(int depth, uint64_t a)
{
    struct guard g __attribute__((cleanup(close_inline))) = {10, a};
    uint64_t sum = FRAMES(ten)(depth, a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8);
    return sum + g.value + FRAMES(ten)(depth, sum, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8);
}

static NOINLINE uint64_t FRAMES(catches)(int depth, uint64_t a)
{
    struct guard g __attribute__((cleanup(close_guard))) = {11, a};
    volatile uint64_t sum = a;
    STRAND_TRY {
        struct guard h __attribute__((cleanup(close_guard), unused)) = {12, a};
        sum += FRAMES(go)(depth, a + 4);
    }
    STRAND_CATCH(&ODD, e) {
        note((uint64_t)strand_exception_code(e) + 1000);
    }
    STRAND_END
    return sum + g.value;
}

static NOINLINE uint64_t FRAMES(rethrows)(int depth, uint64_t a)
{
    volatile uint64_t sum = a;
    STRAND_TRY {
        sum += FRAMES(go)(depth, a + 5);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        struct guard g __attribute__((cleanup(close_guard), unused)) = {13, a};
        note((uint64_t)strand_exception_code(e) + 2000);
        strand_rethrow(strand_exception_keep(e));
    }
    STRAND_END
    return sum;
}

static void *FRAMES(child)(void *arg)
{
    const struct call *call = arg;
    struct guard g __attribute__((cleanup(close_guard), unused)) = {14, call->a};
    return (void *)(uintptr_t)FRAMES(go)(call->depth, call->a);
}

static NOINLINE uint64_t FRAMES(joins)(int depth, uint64_t a)
{
    const struct call call = {depth, a};
    struct guard g __attribute__((cleanup(close_guard))) = {15, a};
    STRAND_SCOPE(scope);
    strand child = strand_spawn_with(scope, NULL, FRAMES(child), &call, sizeof call);
    return (uint64_t)(uintptr_t)strand_join(child) + g.value;
}

/* The C library's frame lies in between. */
static NOINLINE int FRAMES(compare)(const void *left, const void *right)
{
    const struct call *call = left;
    (void)right;
    struct guard g __attribute__((cleanup(close_guard), unused)) = {16, call->a};
    return (int)(FRAMES(go)(call->depth, call->a) & 1);
}

static NOINLINE uint64_t FRAMES(sorts)(int depth, uint64_t a)
{
    struct call calls[2] = {{depth, a}, {depth, a}};
    struct guard g __attribute__((cleanup(close_guard))) = {17, a};
    qsort(calls, 2, sizeof *calls, FRAMES(compare));
    return g.value;
}

/* The call is the last instruction: it returns to the beginning of the next function. */
static NOINLINE __attribute__((noreturn)) void FRAMES(throws)(uint64_t a)
{
    struct guard g __attribute__((cleanup(close_guard), unused)) = {18, a};
    strand_throw_with(a & 1 ? &ODD : &EVEN, STRAND_THROW_INFO(.code = (int)(a % 1000)), "thrown");
}

static NOINLINE uint64_t FRAMES(variadic)(int depth, ...)
{
    va_list arguments;
    va_start(arguments, depth);
    uint64_t a = va_arg(arguments, uint64_t);
    struct guard g __attribute__((cleanup(close_guard))) = {19, a};
    double d = va_arg(arguments, double);
    va_end(arguments);
    return FRAMES(go)(depth, a + (uint64_t)d) + g.value;
}

static NOINLINE uint64_t FRAMES(calls_variadic)(int depth, uint64_t a)
{
    return FRAMES(variadic)(depth, a, 4.0);
}

static NOINLINE uint64_t FRAMES(leaf)(uint64_t a)
{
    if (pick(4))
        FRAMES(throws)(a);
    return a;
}

static NOINLINE uint64_t FRAMES(go)(int depth, uint64_t a)
{
    static uint64_t (*const kinds[])(int, uint64_t) = {
        FRAMES(passes),
        FRAMES(one_guard),
        FRAMES(nested_guards),
        FRAMES(registers),
        FRAMES(variable_array),
        FRAMES(aligned),
        FRAMES(arguments_on_the_stack),
        FRAMES(catches),
        FRAMES(rethrows),
        FRAMES(joins),
        FRAMES(sorts),
        FRAMES(calls_variadic),
        other_level,
    };
    if (!depth || !pick(12))
        return FRAMES(leaf)(a);
    return kinds[pick(sizeof kinds / sizeof *kinds)](depth - 1, a);
}
