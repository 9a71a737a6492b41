/*
 * Memory that is refused when a test says so: for LD_PRELOAD, before a server.
 *
 * The test and all processes of the server share a file, named by FAILING_CONTROL, whose words tell whose calls count,
 * and which of them fail. A call site is a hash of the innermost frames of the stack; a process is configured to fail at one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <unwind.h>

#define SITES 65536
#define FRAMES 10

enum
{
	RECORD = 1,					/* nothing fails; the sites are written down */
	FAIL_ONE = 2,				/* the first call from the site fails */
	FAIL_ALL = 3,				/* that one and all later ones fail */
	FAIL_LARGE = 4				/* all calls for this many bytes or more fail, wherever they come from */
};

struct control
{
	_Atomic int64_t pid;		/* whose calls count; 0: no one's; -1: those of processes that were started since */
	_Atomic int64_t mode;
	_Atomic int64_t generation; /* raised each time the test sets the words above */
	_Atomic uint64_t target;	/* the site that fails; 0: the first call; or the number of bytes */
	_Atomic int64_t calls;
	_Atomic int64_t failed;
	_Atomic int64_t sites;
	_Atomic uint64_t site[SITES];
};

static struct control *control;
static _Atomic pid_t process;
static _Atomic int64_t born;	/* the generation in which this process was started */
static __thread int busy;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("FAILING_CONTROL");
	int			file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (file < 0)
		return;
	void	   *map = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	close(file);
	if (map != MAP_FAILED)
		control = map;
	process = getpid();
	born = -1;
}

struct walk
{
	uint64_t	hash;
	int			frames;
};

static _Unwind_Reason_Code
frame(struct _Unwind_Context *context, void *data)
{
	struct walk *walk = data;

	/* the first two are ours */
	if (walk->frames++ >= 2)
		walk->hash = (walk->hash ^ _Unwind_GetIP(context)) * 0x100000001b3;
	return walk->frames < FRAMES + 2 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/*
 * Is this the dynamic loader's call? It ends the process if there is no memory for a library's thread-local variables when they
 * are first touched, and nothing can be done about that, but to see before that there is some.
 */
static int
is_loader(void *caller)
{
	Dl_info		info;

	return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/ld-linux") != NULL;
}

/* Is this call for this many bytes to fail? */
static int
refuse(void *caller, size_t size)
{
	if (!control || busy || control->pid == 0)
		return 0;
	pid_t		own = getpid();

	if (own != process)
	{
		process = own;
		born = control->generation;
	}
	if (control->pid != own && !(control->pid == -1 && born == control->generation))
		return 0;
	busy = 1;
	int			loader = is_loader(caller);

	busy = 0;
	if (loader)
		return 0;
	if (control->mode == FAIL_LARGE)
	{
		control->failed += size >= control->target;
		return size >= control->target;
	}
	if (control->mode == FAIL_ALL && control->failed > 0)
	{
		control->failed++;
		return 1;
	}
	if (control->mode == FAIL_ONE && control->failed > 0)
		return 0;
	struct walk walk = {0xcbf29ce484222325, 0};

	busy = 1;
	_Unwind_Backtrace(frame, &walk);
	busy = 0;
	control->calls++;
	if (control->mode == RECORD)
	{
		int64_t		count = control->sites;

		for (int64_t i = 0; i < count; i++)
			if (control->site[i] == walk.hash)
				return 0;
		if (count < SITES)
		{
			control->site[count] = walk.hash;
			control->sites = count + 1;
		}
		return 0;
	}
	if (control->target == 0 || control->target == walk.hash)
	{
		control->failed++;
		return 1;
	}
	return 0;
}

#define NONE_IF_REFUSED(none, size) do { if (refuse(__builtin_return_address(0), size)) { errno = ENOMEM; return none; } } while (0)

void *
malloc(size_t size)
{
	NONE_IF_REFUSED(NULL, size);
	return __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	NONE_IF_REFUSED(NULL, count * size);
	return __libc_calloc(count, size);
}

void *
realloc(void *at, size_t size)
{
	NONE_IF_REFUSED(NULL, size);
	return __libc_realloc(at, size);
}

void *
aligned_alloc(size_t align, size_t size)
{
	NONE_IF_REFUSED(NULL, size);
	return __libc_memalign(align, size);
}

int
posix_memalign(void **at, size_t align, size_t size)
{
	NONE_IF_REFUSED(ENOMEM, size);
	*at = __libc_memalign(align, size);
	return *at ? 0 : ENOMEM;
}

void *
mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
	static void *(*next) (void *, size_t, int, int, int, off_t);

	if (!next)
	{
		busy++;
		next = dlsym(RTLD_NEXT, "mmap");
		busy--;
	}
	NONE_IF_REFUSED(MAP_FAILED, size);
	return next(at, size, protection, flags, file, offset);
}

int
posix_fallocate(int file, off_t offset, off_t size)
{
	static int	(*next) (int, off_t, off_t);

	if (!next)
	{
		busy++;
		next = dlsym(RTLD_NEXT, "posix_fallocate");
		busy--;
	}
	if (refuse(__builtin_return_address(0), (size_t) size))
		return ENOSPC;
	return next(file, offset, size);
}
