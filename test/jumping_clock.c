/* Preloaded, it adds to the system's wall clock what a file says: the clock jumps when that changes.

   The file, named by JUMPING_CLOCK, has one 64 bit number, of seconds. Monotonic clocks are as they
   are. Waits until a time of the wall clock end when it is reached, as they do in a real jump that
   was before the wait. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kWallClock = 1000000000 }; /* seconds: later than any time since the machine was started */

static const volatile int64_t * offset;

__attribute__((constructor)) static void begin(void)
{
  const int file = open(getenv("JUMPING_CLOCK"), O_RDONLY | O_CLOEXEC);
  void * const place = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, file, 0);
  if (place == MAP_FAILED) {
    abort();
  }
  offset = place;
  close(file);
}

static time_t jump(void)
{
  return offset == NULL ? 0 : (time_t)*offset;
}

int clock_gettime(clockid_t id, struct timespec * time)
{
  const int result = (int)syscall(SYS_clock_gettime, id, time);
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
    time->tv_sec += jump();
  }
  return result;
}

int gettimeofday(struct timeval * restrict time, void * restrict zone)
{
  const int result = (int)syscall(SYS_gettimeofday, time, zone);
  time->tv_sec += jump();
  return result;
}

time_t time(time_t * result)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}

static struct timespec real(const struct timespec * time)
{
  struct timespec result = *time;
  if (result.tv_sec > kWallClock) {
    result.tv_sec -= jump();
  }
  return result;
}

static void * next(const char * name)
{
  void * found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); /* dlsym finds that of an older library */
  return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

int pthread_cond_timedwait(
  pthread_cond_t * restrict condition, pthread_mutex_t * restrict mutex,
  const struct timespec * restrict time)
{
  int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
    next("pthread_cond_timedwait");
  const struct timespec until = real(time);
  return wait(condition, mutex, &until);
}

int pthread_mutex_timedlock(pthread_mutex_t * restrict mutex, const struct timespec * restrict time)
{
  int (*lock)(pthread_mutex_t *, const struct timespec *) = next("pthread_mutex_timedlock");
  const struct timespec until = real(time);
  return lock(mutex, &until);
}

int sem_timedwait(sem_t * restrict semaphore, const struct timespec * restrict time)
{
  int (*wait)(sem_t *, const struct timespec *) = next("sem_timedwait");
  const struct timespec until = real(time);
  return wait(semaphore, &until);
}
