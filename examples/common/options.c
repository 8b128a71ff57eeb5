/*
 * The parser of the examples' command lines, on getopt_long. options.h says how a program describes its options.
 */
#include "options.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strand.h>

/* getopt_long returns an option's number in the table, which is smaller than any letter. */
enum { MAX_OPTIONS = 31, HELP_COLUMN = 24, USAGE = 2 };

void options_refuse(const struct program *program, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(USAGE);
}

/* ---- the usage text -------------------------------------------------------------------------- */

static void print_row(const struct option_row *row)
{
    char letter[] = {'-', row->letter, ',', '\0'};
    int width = printf("  %3s --%s%s%s", row->letter ? letter : "", row->name, row->value ? "=" : "",
                       row->value ? row->value : "");
    for (const char *line = row->help; *line; width = 0) {
        int length = (int)strcspn(line, "\n");
        printf("%*s%.*s\n", HELP_COLUMN - width, "", length, line);
        line += length + (line[length] == '\n');
    }
}

__attribute__((noreturn)) static void print_usage(const struct program *program, bool takes_command)
{
    static const struct option_row help = {.name = "help", .letter = 'h', .help = "print this text"};
    printf("usage: %s [option...]", program->name);
    if (program->argument)
        printf(takes_command ? " [--] %s [argument...]" : " [%s]", program->argument);
    printf("\n\n%s\n", program->about);
    for (const struct option_row *row = program->options; row->name; row++)
        print_row(row);
    print_row(&help);
    exit(fflush(stdout) != 0 || ferror(stdout));
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_whole(const struct option_row *row)
{
    return row->type != OPTION_IS_DOUBLE && !row->unit;
}

__attribute__((noreturn)) static void refuse_value(const struct program *program, const struct option_row *row,
                                                   const char *value)
{
    const char *what = row->unit == STRAND_MS  ? "milliseconds"
                       : row->unit == STRAND_S ? "seconds"
                       : is_whole(row)         ? "a whole number"
                                               : "a number";
    if (row->text)
        options_refuse(program, "--%s can't be '%s'; it takes one of: %s", row->name, value, row->choices);
    options_refuse(program, "--%s can't be '%s'; it takes %s from %.19Lg to %.19Lg", row->name, value, what, row->min,
                   row->max);
}

static bool is_choice(const char *choices, const char *value)
{
    for (size_t length; *choices; choices += length + strspn(choices + length, " ")) {
        length = strcspn(choices, " ");
        if (length == strlen(value) && memcmp(choices, value, length) == 0)
            return true;
    }
    return false;
}

/* C allows to write an int as a uint32_t, and an int64_t as a uint64_t. */
static void store_number(const struct option_row *row, long double number)
{
    if (row->type == OPTION_IS_DOUBLE)
        *(double *)row->number = (double)number;
    else if (row->type == OPTION_IS_32_BITS)
        *(uint32_t *)row->number = (uint32_t)(int64_t)number;
    else
        *(int64_t *)row->number = (int64_t)number;
}

/* The factor between the unit of a time, which begins at `*text`, and that of its row. */
static long double take_unit(const struct option_row *row, char **text)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ms", STRAND_MS}, {"s", STRAND_S}, {"m", 60 * STRAND_S}};
    for (size_t i = 0; row->unit && i < sizeof units / sizeof *units; i++)
        if (strcmp(*text, units[i].name) == 0) {
            *text += strlen(*text);
            return (long double)units[i].ns / (long double)row->unit;
        }
    return 1;
}

/* A NaN fails the comparison with the bounds. */
static bool take_number(const struct option_row *row, const char *value)
{
    char *end;
    long double number = strtold(value, &end);
    if (end != value)
        number *= take_unit(row, &end);
    if (end == value || *end || !(number >= row->min && number <= row->max))
        return false;
    if (is_whole(row) && value[strspn(value, "0123456789")])
        return false;
    store_number(row, row->unit ? number * (long double)row->unit : number);
    return true;
}

static void append(struct option_list *list, const char *value)
{
    const char **values = reallocarray(list->values, list->count + 1, sizeof *values);
    if (!values) {
        fprintf(stderr, "no memory for the command line\n");
        exit(EXIT_FAILURE);
    }
    values[list->count++] = value;
    list->values = values;
}

static void take_value(const struct program *program, const struct option_row *row, const char *value)
{
    bool taken = true;
    if (row->flag)
        *row->flag = true;
    else if (row->number)
        taken = take_number(row, value);
    else if (row->list)
        append(row->list, value);
    else if (row->choices && !is_choice(row->choices, value))
        taken = false;
    else
        *row->text = value;
    if (!taken)
        refuse_value(program, row, value);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option_row *find_row(const struct option_row *rows, int number_or_letter)
{
    for (int i = 0; rows[i].name; i++)
        if (number_or_letter == i + 1 || number_or_letter == rows[i].letter)
            return &rows[i];
    return NULL;
}

/* Afterwards the arguments begin at argv[optind]. */
static void take_options(const struct program *program, int argc, char **argv, bool takes_command)
{
    struct option names[MAX_OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
    char letters[2 * MAX_OPTIONS + 3] = "+h", *letter = letters + 2; /* +: the first argument ends the options */
    for (int i = 0; program->options[i].name; i++) {
        assert(i < MAX_OPTIONS);
        const struct option_row *row = &program->options[i];
        names[i + 1] = (struct option){row->name, row->value ? required_argument : no_argument, NULL, i + 1};
        if (row->letter)
            letter += sprintf(letter, row->value ? "%c:" : "%c", row->letter);
    }
    for (int option; (option = getopt_long(argc, argv, letters + !takes_command, names, NULL)) != -1;) {
        const struct option_row *row = find_row(program->options, option);
        if (option == 'h')
            print_usage(program, takes_command);
        if (!row) { /* getopt_long has printed why */
            fprintf(stderr, "Try %s --help.\n", program->name);
            exit(USAGE);
        }
        take_value(program, row, optarg);
    }
}

const char *options_read(const struct program *program, int argc, char **argv)
{
    take_options(program, argc, argv, false);
    int most = program->argument ? 1 : 0;
    if (argc - optind > most)
        options_refuse(program, "unexpected argument '%s'. Try %s --help.", argv[optind + most], program->name);
    return argv[optind];
}

char **options_read_command(const struct program *program, int argc, char **argv)
{
    take_options(program, argc, argv, true);
    if (!argv[optind])
        options_refuse(program, "%s is missing. Try %s --help.", program->argument, program->name);
    return argv + optind;
}
