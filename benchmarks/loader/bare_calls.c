// The system calls that the first batch of many local files needs, and nothing else: the names in a
// folder, the end of each file, and the stamp of each file when an epoch begins.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kEndBytes = 4096, kPathBytes = 512 };

int main(int count, char** arguments) {
  DIR* folder = count > 1 ? opendir(arguments[1]) : NULL;
  if (folder == NULL) return 1;
  char(*paths)[kPathBytes] = NULL;
  size_t files = 0, room = 0;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    if (files == room) {
      room = room * 2 + 1024;
      paths = realloc(paths, room * sizeof *paths);
      if (paths == NULL) return 1;
    }
    snprintf(paths[files++], kPathBytes, "%s/%s", arguments[1], entry->d_name);
  }
  closedir(folder);
  struct stat status;
  char end[kEndBytes];
  for (size_t i = 0; i < files; ++i) {
    const int file = open(paths[i], O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) return 1;
    const off_t begin = status.st_size > kEndBytes ? status.st_size - kEndBytes : 0;
    if (pread(file, end, kEndBytes, begin) < 0 || close(file) != 0) return 1;
  }
  for (size_t i = 0; i < files; ++i) {
    if (stat(paths[i], &status) != 0) return 1;
  }
  return 0;
}
