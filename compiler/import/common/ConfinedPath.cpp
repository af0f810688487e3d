#include "compiler/import/common/ConfinedPath.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace llmrt;

namespace llmc {
namespace {

/// The system's own limit on links in one path.
constexpr int maxLinks = 40;

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 200)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += '?';
    else
      out += c;
  }
  return out + (text.size() > 200 ? "...'" : "'");
}

/// Appends the components of \p path, in order, before those that are still to be walked.
void pushComponents(std::string_view path, std::deque<std::string> &pending) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".")
      parts.emplace_back(part);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  pending.insert(pending.begin(), parts.begin(), parts.end());
}

/// Folders that are open on the way down; the first is the root of the confinement.
class FolderStack {
public:
  ~FolderStack() {
    for (int fd : fds_)
      ::close(fd);
  }
  void push(int fd) { fds_.push_back(fd); }
  int top() const { return fds_.back(); }
  /// Goes up one folder; false at the root.
  bool pop() {
    if (fds_.size() <= 1)
      return false;
    ::close(fds_.back());
    fds_.pop_back();
    return true;
  }

private:
  std::vector<int> fds_;
};

/// The text of the link \p name in \p folder, or empty when it is no link.
std::string readLink(int folder, const std::string &name) {
  char buffer[PATH_MAX];
  const ssize_t length = ::readlinkat(folder, name.c_str(), buffer, sizeof(buffer));
  return length > 0 ? std::string(buffer, static_cast<size_t>(length)) : std::string();
}

/// Splits \p baseDir into the folder that confines and the way from it to the model's folder.
std::pair<std::string, std::string> confinementRoot(const std::string &baseDir) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path real = fs::canonical(baseDir, ignored);
  if (!ignored && real.parent_path().filename() == "snapshots") {
    const fs::path root = real.parent_path().parent_path();
    if (fs::is_directory(root / "blobs", ignored))
      return {root.string(), "snapshots/" + real.filename().string()};
  }
  return {baseDir.empty() ? "." : baseDir, ""};
}

} // namespace

Status checkRelativePath(std::string_view relative, const std::string &origin) {
  const auto refuse = [&](const std::string &why) {
    return invalidFile(origin + ": file name " + quoted(relative) + " " + why +
                       "; a relative path inside the model's folder is needed");
  };
  if (relative.empty())
    return refuse("is empty");
  if (relative.size() >= PATH_MAX)
    return refuse("is too long");
  if (relative.front() == '/')
    return refuse("is absolute");
  for (char c : relative)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == 0x7f)
      return refuse("has a control character or a backslash");
  if (relative.find("://") != std::string_view::npos ||
      (relative.size() >= 2 && relative[1] == ':'))
    return refuse("is a URL or names a drive");
  if (relative.back() == '/')
    return refuse("is a folder");
  std::deque<std::string> parts;
  pushComponents(relative, parts);
  if (parts.empty())
    return refuse("is a folder");
  for (const std::string &part : parts)
    if (part == "..")
      return refuse("goes up with '..'");
  return Status::ok();
}

Result<MappedFile> openConfined(const std::string &baseDir, std::string_view relative,
                                const std::string &origin) {
  LLMRT_RETURN_IF_ERROR(checkRelativePath(relative, origin));
  const std::string shown = (std::filesystem::path(baseDir) / relative).string();
  const auto fail = [&](int error) {
    return ioError(origin + ": " + shown + ": can't be opened: " + std::strerror(error));
  };
  const auto [root, inside] = confinementRoot(baseDir);
  FolderStack folders;
  const int rootFd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (rootFd < 0)
    return fail(errno);
  folders.push(rootFd);

  std::deque<std::string> pending;
  pushComponents(relative, pending);
  pushComponents(inside, pending);
  for (int links = 0; !pending.empty();) {
    const std::string name = std::move(pending.front());
    pending.pop_front();
    const bool last = pending.empty();
    if (name == "..") { // can only come from the text of a link
      if (!folders.pop())
        return invalidFile(origin + ": " + shown + " leads out of the model's folder");
      continue;
    }
    // O_NONBLOCK: a FIFO must not block; MappedFile then refuses it.
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
    const int fd = ::openat(folders.top(), name.c_str(), last ? flags : flags | O_DIRECTORY);
    if (fd >= 0) {
      if (last)
        return MappedFile::fromDescriptor(fd, shown);
      folders.push(fd);
      continue;
    }
    const int error = errno;
    const std::string target = readLink(folders.top(), name);
    if (target.empty())
      return fail(error);
    if (++links > maxLinks)
      return fail(ELOOP);
    if (target.front() == '/')
      return invalidFile(origin + ": " + shown + " is a link out of the model's folder");
    pushComponents(target, pending);
  }
  return invalidFile(origin + ": " + shown + " is a folder, not a file");
}

} // namespace llmc
