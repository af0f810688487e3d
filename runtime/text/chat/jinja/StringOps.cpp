#include "runtime/text/chat/jinja/StringOps.h"

#include "runtime/text/chat/jinja/Unicode.h"

#include <algorithm>

namespace llmrt::jinja {

bool hasCase(std::string_view text, bool upper) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    CodePoint c = decodeAt(text, i);
    if (upper ? isLower(c.value) : isUpper(c.value))
      return false;
    any |= upper ? isUpper(c.value) : isLower(c.value);
    i += c.size;
  }
  return any;
}

static void splitBySpace(std::string_view text, Int most, bool fromRight,
                         std::vector<std::string_view> &parts) {
  for (;;) {
    text = stripSpace(text, !fromRight, fromRight);
    if (text.empty())
      return;
    if (most >= 0 && static_cast<Int>(parts.size()) >= most) {
      parts.push_back(text);
      return;
    }
    if (fromRight) {
      size_t begin = text.size();
      while (begin > 0) {
        size_t previous = begin - 1;
        while (previous > 0 && (static_cast<unsigned char>(text[previous]) & 0xC0) == 0x80)
          --previous;
        if (isSpace(decodeAt(text, previous).value))
          break;
        begin = previous;
      }
      parts.push_back(text.substr(begin));
      text = text.substr(0, begin);
    } else {
      size_t end = 0;
      while (end < text.size()) {
        CodePoint c = decodeAt(text, end);
        if (isSpace(c.value))
          break;
        end += c.size;
      }
      parts.push_back(text.substr(0, end));
      text = text.substr(end);
    }
  }
}

void splitText(Session &session, std::string_view text, const std::string *separator, Int most,
               bool fromRight, const std::function<void(std::string_view)> &part) {
  session.step(text.size() / 16);
  std::vector<std::string_view> parts;
  auto add = [&](std::string_view p) {
    session.step();
    session.checkRoom(parts.size() * sizeof(std::string_view));
    parts.push_back(p);
  };
  if (!separator) {
    session.checkRoom(text.size() * sizeof(std::string_view) / 2);
    splitBySpace(text, most, fromRight, parts);
  } else {
    while (most < 0 || static_cast<Int>(parts.size()) < most) {
      size_t at = fromRight ? findLast(session, text, *separator) : findText(text, *separator);
      if (at == text.npos)
        break;
      add(fromRight ? text.substr(at + separator->size()) : text.substr(0, at));
      text = fromRight ? text.substr(0, at) : text.substr(at + separator->size());
    }
    add(text);
  }
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  for (std::string_view p : parts)
    part(p);
}

std::string replaceText(Session &session, std::string_view text, std::string_view what,
                        std::string_view by, Int count) {
  session.stepBytes(text.size());
  TextBuilder out(session);
  size_t at = 0;
  if (what.empty()) { // between all characters, and at both ends
    while (count != 0) {
      session.step();
      out.append(by);
      --count;
      if (at >= text.size())
        return out.take();
      size_t size = decodeAt(text, at).size;
      out.append(text.substr(at, size));
      at += size;
    }
    out.append(text.substr(at));
    return out.take();
  }
  for (; count != 0; --count) {
    size_t hit = findText(text, what, at);
    if (hit == text.npos)
      break;
    session.step();
    out.append(text.substr(at, hit - at)).append(by);
    at = hit + what.size();
  }
  out.append(text.substr(at));
  return out.take();
}

size_t findLast(Session &session, std::string_view text, std::string_view what) {
  if (what.size() > text.size())
    return text.npos;
  for (size_t at = text.size() - what.size();; --at) {
    size_t same = 0;
    while (same < what.size() && text[at + same] == what[same])
      ++same;
    if (same == what.size())
      return at;
    if ((at & 63) == 0 || same > 64)
      session.step(1 + same / 64);
    if (at == 0)
      return text.npos;
  }
}

std::string centerText(Session &session, std::string_view text, Int width, std::string_view fill) {
  Int missing = width - static_cast<Int>(countCodePoints(text));
  if (missing <= 0)
    return std::string(text);
  Int left = missing / 2 + (missing & width & 1);
  TextBuilder out(session);
  out.repeat(fill, left).append(text).repeat(fill, missing - left);
  return out.take();
}

} // namespace llmrt::jinja
