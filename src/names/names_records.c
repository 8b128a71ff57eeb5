/*
 * Services and texts of names.
 */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CLASS_INTERNET = 1, TYPE_TXT = 16, TYPE_SRV = 33 };

/* ---- questions to name servers ----------------------------------------------------------------------------------- */

struct asking {
    struct names_channel channel;
    const struct names_config *config;
    const char *name;
    int (*take)(struct asking *asking, const unsigned char *answer, int size); /* returns a status */
    void *out; /* what is returned: one block of memory */
};

static void end(struct asking *asking)
{
    names_channel_close(&asking->channel);
    free(asking->out);
}

static void answered(void *arg, int status, int timeouts, unsigned char *answer, int size)
{
    struct asking *asking = arg;
    (void)timeouts;
    asking->channel.status = status == ARES_SUCCESS ? asking->take(asking, answer, size) : status;
    asking->channel.done = true;
}

static void begin(struct asking *asking, int type)
{
    STRAND_NO_SUSPEND;
    ares_search(asking->channel.ares, asking->name, CLASS_INTERNET, type, answered, asking);
}

/* Ask for records. Returns 0 with the block in *out, or a negated errno code. */
static int ask(struct asking *asking, int type, void **out)
{
    int status = names_channel_open(&asking->channel, asking->config, NULL);
    if (status == ARES_SUCCESS) {
        begin(asking, type);
        names_channel_wait(&asking->channel);
        status = asking->channel.status;
    }
    if (status != ARES_SUCCESS)
        return names_fail_by(asking->config, status, asking->channel.refused, asking->name);
    *out = asking->out;
    asking->out = NULL;
    return 0;
}

/* ---- services ---------------------------------------------------------------------------------------------------- */

/* A number that differs each time, and that a seed repeats. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void swap(strand_names_service *a, strand_names_service *b)
{
    strand_names_service other = *a;
    *a = *b;
    *b = other;
}

static int by_priority(const void *a, const void *b)
{
    return ((const strand_names_service *)a)->priority - ((const strand_names_service *)b)->priority;
}

/* RFC 2782: the next one of a priority is each with a chance that is its share of the weights; those without a weight
 * have a small one. */
static void shuffle(strand_names_service *services, size_t count, uint64_t *state)
{
    for (; count > 1; services++, count--) {
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += (uint64_t)services[i].weight * 64 + 1;
        uint64_t at = next_random(state) % sum;
        size_t chosen = 0;
        while (at >= (uint64_t)services[chosen].weight * 64 + 1)
            at -= (uint64_t)services[chosen++].weight * 64 + 1;
        swap(services, services + chosen);
    }
}

static void sort(strand_names_service *services, size_t count)
{
    uint64_t state = (uint64_t)strand_now().ns ^ strand_id(strand_self()) << 40;
    qsort(services, count, sizeof *services, by_priority);
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first; next < count && services[next].priority == services[first].priority;)
            next++;
        shuffle(services + first, next - first, &state);
    }
}

/* Make a list with copies of these services. */
static strand_names_services *copy_services(const strand_names_service *from, size_t count)
{
    size_t size = sizeof(strand_names_services) + count * sizeof *from, text = size;
    for (size_t i = 0; i < count; i++)
        size += strlen(from[i].host) + 1;
    strand_names_services *list = malloc(size);
    if (!list)
        return NULL;
    strand_names_service *services = (strand_names_service *)(list + 1);
    for (size_t i = 0; i < count; i++) {
        services[i] = from[i];
        services[i].host = strcpy((char *)list + text, from[i].host);
        text += strlen(from[i].host) + 1;
    }
    sort(services, count);
    *list = (strand_names_services){.count = count, .services = services};
    return list;
}

static int copy_replies(struct asking *asking, const struct ares_srv_reply *replies, size_t count)
{
    strand_names_service *services = calloc(count, sizeof *services);
    if (!services)
        return ARES_ENOMEM;
    for (size_t i = 0; i < count; i++, replies = replies->next)
        services[i] = (strand_names_service){
            .host = replies->host, .port = replies->port, .priority = replies->priority, .weight = replies->weight};
    asking->out = copy_services(services, count);
    free(services);
    return asking->out ? ARES_SUCCESS : ARES_ENOMEM;
}

static int take_services(struct asking *asking, const unsigned char *answer, int size)
{
    struct ares_srv_reply *replies;
    int status = ares_parse_srv_reply(answer, size, &replies);
    if (status != ARES_SUCCESS)
        return status;
    size_t count = 0;
    for (const struct ares_srv_reply *at = replies; at; at = at->next)
        count++;
    bool none = count == 1 && (!replies->host[0] || strcmp(replies->host, ".") == 0); /* "there is no such service" */
    status = none || !count ? ARES_ENODATA : copy_replies(asking, replies, count);
    ares_free_data(replies);
    return status;
}

int strand_names_srv(const char *name, const strand_names_attr *attr, strand_names_services **out)
{
    struct names_config config;
    const strand_names_entry *entry;
    int error = names_begin(&config, attr, name, "name");
    if (error)
        return error;
    if (config.attr.table) {
        error = names_table_records(&config, name, true, &entry);
        if (!error && !(*out = copy_services(entry->services, entry->service_count)))
            error = names_fail(&config, -ENOMEM, "there is no memory");
        return error;
    }
    __attribute__((cleanup(end))) struct asking asking = {.config = &config, .name = name, .take = take_services};
    void *list;
    if ((error = ask(&asking, TYPE_SRV, &list)) == 0)
        *out = list;
    return error;
}

/* ---- texts ---------------------------------------------------------------------------------------------------------
 */

/* Make a list with room for so many texts, of so many bytes together. */
static strand_names_texts *make_texts(size_t count, size_t bytes, char **text)
{
    strand_names_texts *list = malloc(sizeof *list + count * sizeof(strand_names_text) + bytes + count);
    if (list) {
        *list = (strand_names_texts){.texts = (strand_names_text *)(list + 1)};
        *text = (char *)((strand_names_text *)(list + 1) + count);
    }
    return list;
}

/* Add bytes to the last text, or begin another one. */
static void add_bytes(strand_names_texts *list, char **text, const void *bytes, size_t size, bool begins)
{
    strand_names_text *texts = (strand_names_text *)(list + 1);
    if (begins || !list->count) {
        *text += list->count ? 1 : 0; /* after the 0 byte of the one before */
        texts[list->count++] = (strand_names_text){.text = *text};
    }
    memcpy(*text, bytes, size);
    *text += size;
    **text = 0;
    texts[list->count - 1].size += size;
}

static int take_texts(struct asking *asking, const unsigned char *answer, int size)
{
    struct ares_txt_ext *replies;
    int status = ares_parse_txt_reply_ext(answer, size, &replies);
    if (status != ARES_SUCCESS)
        return status;
    size_t count = 1, bytes = 0;
    char *text;
    for (const struct ares_txt_ext *at = replies; at; at = at->next) {
        count += at->record_start != 0;
        bytes += at->length;
    }
    asking->out = make_texts(count, bytes, &text);
    for (const struct ares_txt_ext *at = replies; asking->out && at; at = at->next)
        add_bytes(asking->out, &text, at->txt, at->length, at->record_start != 0);
    ares_free_data(replies);
    return !asking->out ? ARES_ENOMEM : ((strand_names_texts *)asking->out)->count ? ARES_SUCCESS : ARES_ENODATA;
}

static int texts_of(const struct names_config *config, const strand_names_entry *entry, strand_names_texts **out)
{
    size_t bytes = 0;
    char *text;
    for (size_t i = 0; i < entry->text_count; i++)
        bytes += entry->texts[i].size;
    *out = make_texts(entry->text_count, bytes, &text);
    if (!*out)
        return names_fail(config, -ENOMEM, "there is no memory");
    for (size_t i = 0; i < entry->text_count; i++)
        add_bytes(*out, &text, entry->texts[i].text, entry->texts[i].size, true);
    return 0;
}

int strand_names_txt(const char *name, const strand_names_attr *attr, strand_names_texts **out)
{
    struct names_config config;
    const strand_names_entry *entry;
    int error = names_begin(&config, attr, name, "name");
    if (error)
        return error;
    if (config.attr.table) {
        error = names_table_records(&config, name, false, &entry);
        return error ? error : texts_of(&config, entry, out);
    }
    __attribute__((cleanup(end))) struct asking asking = {.config = &config, .name = name, .take = take_texts};
    void *list;
    if ((error = ask(&asking, TYPE_TXT, &list)) == 0)
        *out = list;
    return error;
}
