// Says which sanitizer compiles this: GCC defines macros for its own, Clang has features.
#pragma once

#if defined(__has_feature)
#define ARROWDL_HAS_FEATURE(feature) __has_feature(feature)
#else
#define ARROWDL_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || ARROWDL_HAS_FEATURE(address_sanitizer)
#define ARROWDL_HAS_ASAN 1
#else
#define ARROWDL_HAS_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || ARROWDL_HAS_FEATURE(thread_sanitizer)
#define ARROWDL_HAS_TSAN 1
#else
#define ARROWDL_HAS_TSAN 0
#endif
