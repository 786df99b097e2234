/* The message-passing interface of transport.h by MPI, which only this file knows. */
#include <mpi.h>

#include "base/fail.h"
#include "mirror/transport.h"
#include <stdlib.h>

struct lk_transport {
    MPI_Comm comm;
    bool is_started;
    int count;
    MPI_Request *requests; /* [count]: of each transfer, or MPI_REQUEST_NULL */
    int *ended;            /* [count] */
};

static enum lk_status failed(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return lk_fail(LK_E_IO, "%s failed: %s", call, text);
}

/* Calls a function of MPI; where it fails, returns with the function's name and MPI's text. */
#define TRY(call, ...)                                                                         \
    do {                                                                                       \
        const int code = call(__VA_ARGS__);                                                    \
        if (code != MPI_SUCCESS)                                                               \
            return failed(#call, code);                                                        \
    } while (0)

static enum lk_status start_mpi(struct lk_transport *wire)
{
    int is_started, level;
    TRY(MPI_Initialized, &is_started);
    if (is_started)
        return lk_fail(LK_E_ARGUMENT,
                       "MPI was started in this process before, and it starts only once");
    TRY(MPI_Init_thread, NULL, NULL, MPI_THREAD_FUNNELED, &level);
    wire->is_started = true;
    if (level < MPI_THREAD_FUNNELED)
        return lk_fail(LK_E_ARGUMENT, "this MPI allows no threads beside the one that "
                                      "calls it: MPI_THREAD_FUNNELED is needed");
    TRY(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TRY(MPI_Comm_dup, MPI_COMM_WORLD, &wire->comm);
    return LK_OK;
}

static enum lk_status start(struct lk_transport *wire, int *rank, int *size)
{
    int r, n;
    LK_TRY(start_mpi(wire));
    TRY(MPI_Comm_rank, wire->comm, &r);
    TRY(MPI_Comm_size, wire->comm, &n);
    *rank = r;
    *size = n;
    return LK_OK;
}

/* In a job that has failed, transfers are still running; MPI_Finalize() ends them, and only
 * then their memory may be freed. */
static void mpi_close(struct lk_transport *wire)
{
    if (!wire)
        return;
    if (wire->is_started)
        MPI_Finalize();
    free(wire->requests);
    free(wire->ended);
    free(wire);
}

static enum lk_status mpi_open(struct lk_transport **wire, int *rank, int *size)
{
    struct lk_transport *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("MPI", sizeof *made);
    const enum lk_status status = start(made, rank, size);
    if (status != LK_OK) {
        mpi_close(made);
        return status;
    }
    *wire = made;
    return LK_OK;
}

static enum lk_status mpi_reserve(struct lk_transport *wire, int transfers)
{
    const size_t count = (size_t)transfers;
    if (transfers <= wire->count)
        return LK_OK;
    MPI_Request *requests = realloc(wire->requests, count * sizeof(MPI_Request));
    if (!requests)
        return lk_fail_memory("transfers", count * sizeof(MPI_Request));
    wire->requests = requests;
    int *ended = realloc(wire->ended, count * sizeof *ended);
    if (!ended)
        return lk_fail_memory("transfers", count * sizeof *ended);
    wire->ended = ended;
    for (; wire->count < transfers; wire->count++)
        requests[wire->count] = MPI_REQUEST_NULL;
    return LK_OK;
}

static enum lk_status mpi_send(struct lk_transport *wire, int transfer, int peer, int tag,
                               size_t bytes, const void *memory)
{
    TRY(MPI_Isend, memory, (int)bytes, MPI_BYTE, peer, tag, wire->comm,
        &wire->requests[transfer]);
    return LK_OK;
}

static enum lk_status mpi_receive(struct lk_transport *wire, int transfer, int peer, int tag,
                                  size_t bytes, void *memory)
{
    TRY(MPI_Irecv, memory, (int)bytes, MPI_BYTE,
        peer == LK_TRANSPORT_ANY ? MPI_ANY_SOURCE : peer, tag, wire->comm,
        &wire->requests[transfer]);
    return LK_OK;
}

static enum lk_status mpi_forget(struct lk_transport *wire, int transfer)
{
    TRY(MPI_Cancel, &wire->requests[transfer]);
    TRY(MPI_Request_free, &wire->requests[transfer]);
    return LK_OK;
}

static enum lk_status mpi_share(struct lk_transport *wire, int transfer, int root, size_t bytes,
                                void *memory)
{
    TRY(MPI_Ibcast, memory, (int)bytes, MPI_BYTE, root, wire->comm, &wire->requests[transfer]);
    return LK_OK;
}

static enum lk_status mpi_sum(struct lk_transport *wire, int transfer, int real_bytes,
                              size_t count, void *memory)
{
    TRY(MPI_Iallreduce, MPI_IN_PLACE, memory, (int)count,
        real_bytes == 8 ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, wire->comm,
        &wire->requests[transfer]);
    return LK_OK;
}

static enum lk_status mpi_poll(struct lk_transport *wire, const int **ended, int *count)
{
    int found = 0;
    TRY(MPI_Testsome, wire->count, wire->requests, &found, wire->ended, MPI_STATUSES_IGNORE);
    *ended = wire->ended;
    *count = found == MPI_UNDEFINED ? 0 : found;
    return LK_OK;
}

const struct lk_transport_kind lk_transport_mpi = {
    .open = mpi_open,
    .close = mpi_close,
    .reserve = mpi_reserve,
    .send = mpi_send,
    .receive = mpi_receive,
    .forget = mpi_forget,
    .broadcast = mpi_share,
    .sum = mpi_sum,
    .poll = mpi_poll,
};
