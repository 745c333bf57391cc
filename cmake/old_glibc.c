/* What newer headers use of glibc, for a module that also loads on an older one (ARROWDL_GLIBC). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

/* glibc 2.32: true while the process has one thread. libstdc++ then counts without atomics. */
char __libc_single_threaded = 0;

static struct timespec to_realtime(clockid_t clock, const struct timespec* deadline) {
  struct timespec now;
  struct timespec result;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &result);
  result.tv_sec += deadline->tv_sec - now.tv_sec;
  result.tv_nsec += deadline->tv_nsec - now.tv_nsec;
  if (result.tv_nsec < 0) {
    result.tv_nsec += 1000000000;
    --result.tv_sec;
  } else if (result.tv_nsec >= 1000000000) {
    result.tv_nsec -= 1000000000;
    ++result.tv_sec;
  }
  return result;
}

/* glibc 2.30. Without it a wait counts in real time, as libstdc++ did before: callers look at their
   own clock afterwards. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
  typedef int (*Function)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  Function function = (Function)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
  if (function != NULL) return function(condition, mutex, clock, deadline);
  struct timespec realtime = to_realtime(clock, deadline);
  return pthread_cond_timedwait(condition, mutex, &realtime);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                            const struct timespec* deadline) {
  typedef int (*Function)(pthread_mutex_t*, clockid_t, const struct timespec*);
  Function function = (Function)dlsym(RTLD_DEFAULT, "pthread_mutex_clocklock");
  if (function != NULL) return function(mutex, clock, deadline);
  struct timespec realtime = to_realtime(clock, deadline);
  return pthread_mutex_timedlock(mutex, &realtime);
}
