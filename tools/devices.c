/* lockstep devices: which devices there are. */
#include "command.h"
#include "terminal/json.h"
#include "terminal/terminal.h"
#include <stdio.h>
#include <string.h>

/* Extensions the engine makes use of where a device has them. */
static const char *const used_extensions[] = {"cl_khr_fp64", "cl_khr_subgroup_shuffle",
                                              "cl_intel_subgroups", "cl_khr_subgroups", NULL};

static bool has_extension(const struct lk_device_info *info, const char *name)
{
    const size_t length = strlen(name);
    for (const char *p = info->extensions; (p = strstr(p, name)); p += length)
        if ((p == info->extensions || p[-1] == ' ') && (p[length] == ' ' || !p[length]))
            return true;
    return false;
}

static const char *class_name(const struct lk_device_info *info)
{
    return info->device_class == LK_CLASS_CPU ? "cpu" : "gpu";
}

json_t *device_json(const struct lk_device_info *info)
{
    json_t *extensions = json_array();
    for (int i = 0; used_extensions[i]; i++)
        if (has_extension(info, used_extensions[i]))
            json_array_append_new(extensions, json_string(used_extensions[i]));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:i, s:i, s:I, s:I, s:I, s:i, s:o}",
                     "index", info->index, "name", json_text(info->name), "vendor",
                     json_text(info->vendor), "driver", json_text(info->driver), "version",
                     json_text(info->version), "platform", json_text(info->platform), "class",
                     class_name(info), "compute_units", info->compute_units, "clock_mhz",
                     info->clock_mhz, "memory_bytes", (json_int_t)info->memory_bytes,
                     "allocation_bytes", (json_int_t)info->allocation_bytes, "local_bytes",
                     (json_int_t)info->local_bytes, "vector_width", info->vector_width,
                     "extensions", extensions);
}

static void print(const struct lk_device_info *info)
{
    char extensions[256] = "";
    print_lines("%d  %s\n", info->index, info->name);
    print_lines("   %s, driver %s\n   %s\n", info->platform, info->driver, info->version);
    print_lines("   class %s, %d compute units at %d MHz, %.1f GiB memory, vector width %d\n",
                class_name(info), info->compute_units, info->clock_mhz,
                (double)info->memory_bytes / (1 << 30), info->vector_width);
    for (int i = 0; used_extensions[i]; i++)
        if (has_extension(info, used_extensions[i])) {
            strcat(extensions, " ");
            strcat(extensions, used_extensions[i]);
        }
    print_lines("   extensions used:%s\n", *extensions ? extensions : " none");
}

static int run(const struct arguments *arguments)
{
    if (arguments->word_count)
        return wrong_usage(arguments->command, "takes options only, found '%s'",
                           arguments->words[0]);
    int count = 0;
    enum lk_status status = lk_device_count(&count);
    json_t *list = json_array();
    for (int i = 0; status == LK_OK && i < count; i++) {
        struct lk_device_info info;
        status = lk_device_query(i, &info);
        if (status != LK_OK)
            break;
        if (option_given(arguments, "json"))
            json_array_append_new(list, device_json(&info));
        else
            print(&info);
    }
    if (status == LK_OK && option_given(arguments, "json"))
        return json_print(json_pack("{s:o}", "devices", list), JSON_INDENT(2));
    json_decref(list);
    return status == LK_OK ? DONE : failed(status);
}

static void more(void)
{
    printf("The index is what --device takes: 0, 0,2, all, gpu, cpu; 0/2 cuts device 0 into\n"
           "two equal halves that act as two devices, 0*2 makes two replicas on it.\n");
}

static const struct option options[] = {{"json", NULL, "print JSON"}, {0}};

static const struct example examples[] = {
    {"lockstep devices", "what --device can name"},
    {0},
};

const struct command devices_command = {
    .name = "devices",
    .usage = "[--json]",
    .help = "list the OpenCL devices: index, name, driver, class, memory",
    .options = options,
    .examples = examples,
    .run = run,
    .more = more,
};
