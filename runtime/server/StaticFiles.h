//===- StaticFiles.h - files that are part of the program -------------------===//
#ifndef LLMRT_SERVER_STATICFILES_H
#define LLMRT_SERVER_STATICFILES_H

#include <string_view>

namespace llmrt::server {

/// page.html: a chat and the metrics, in one file.
std::string_view pageHtml();
/// openapi.json: the API's description.
std::string_view openApiJson();

} // namespace llmrt::server

#endif // LLMRT_SERVER_STATICFILES_H
