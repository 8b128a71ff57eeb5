/*
 * The command line of an example: a table of options.
 *
 * A program lists its options and the variables that they set. The usage text, the parser and the messages come from
 * this list. Every program has -h and --help as well. An option that is not given leaves its variable alone, so the
 * variable's first value is the default.
 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type { OPTION_IS_32_BITS, OPTION_IS_64_BITS, OPTION_IS_DOUBLE };

/* The program owns the array. */
struct option_list {
    const char **values;
    size_t count;
};

struct option_row {
    const char *name;
    char letter;       /* 0: the option has a long name only */
    const char *value; /* what the usage text calls the value; NULL: the option takes none */
    const char *help;  /* one or more lines */

    bool *flag;               /* becomes true */
    const char **text;        /* becomes the value as it was given */
    const char *choices;      /* the texts that are allowed, separated by spaces; NULL: any */
    struct option_list *list; /* gets the value of each time that the option is given */

    /* The number's variable, and the bounds and the unit of what the user writes. */
    void *number;
    enum option_type type;
    long double min, max; /* 64 bits of mantissa hold every int64_t */
    int64_t unit;         /* of a time: STRAND_MS or STRAND_S; the variable holds nanoseconds. Else 0 */
};

/* The last fields of a row: what the option sets. */
#define OPTION_FLAG(Variable) .flag = &(Variable)
#define OPTION_TEXT(Variable) .text = &(Variable)
#define OPTION_LIST(Variable) .list = &(Variable)
#define OPTION_CHOICE(Variable, Choices) .text = &(Variable), .choices = (Choices)
/* A variable of a whole type takes whole numbers only. */
#define OPTION_NUMBER(Variable, Min, Max)                                                                              \
    .number = &(Variable), .type = OPTION_TYPE(Variable), .min = (Min), .max = (Max)
/* The variable is an int64_t. The user may write fractions, and another unit than that of the row: 500ms, 5s, 2m. */
#define OPTION_TIME(Variable, Unit, Min, Max) OPTION_NUMBER(Variable, Min, Max), .unit = (Unit)

/* clang-format off */
#define OPTION_TYPE(Variable)                                                                                          \
    _Generic(&(Variable),                                                                                              \
             int *: OPTION_IS_32_BITS, uint32_t *: OPTION_IS_32_BITS,                                                  \
             int64_t *: OPTION_IS_64_BITS, uint64_t *: OPTION_IS_64_BITS,                                              \
             double *: OPTION_IS_DOUBLE)
/* clang-format on */

struct program {
    const char *name;
    const char *about;    /* whole lines: what the program does */
    const char *argument; /* what the usage text calls the one argument that may follow the options; NULL: none may */
    const struct option_row *options; /* the last one has no name */
};

/* Sets the variables and returns the argument, or NULL. Exits
 * with status 0 after --help, with 1 if the usage text cannot be written, and with 2 and a message if the command line
 * is wrong. */
const char *options_read(const struct program *program, int argc, char **argv);

/* Likewise for a program whose options end with the first argument, which begins a command. Returns the command. */
char **options_read_command(const struct program *program, int argc, char **argv);

/* Prints the message behind the program's name and exits with status 2. */
__attribute__((noreturn, format(printf, 2, 3))) void options_refuse(const struct program *program, const char *format,
                                                                    ...);

#endif
