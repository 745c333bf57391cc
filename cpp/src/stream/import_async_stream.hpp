// What our asynchronous producer knows of our consumer.
#pragma once

#include <exception>

#include "arrowdl/async_stream.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Ends the stream of a handler that is an `AsyncReceiver`'s with `failure` itself, which errno and
/// text would lose. Returns false, and does nothing, for other handlers.
bool pass_failure(ArrowAsyncDeviceStreamHandler* handler,
                  const std::exception_ptr& failure) noexcept;

ARROWDL_END_NAMESPACE
