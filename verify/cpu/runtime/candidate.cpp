// The candidate's library: loaded after the driver has read what must stay secret, its variables known from the call file.
#include "candidate.h"

#include <algorithm>
#include <dlfcn.h>
#include <link.h>

namespace regraph {

Candidate candidate;

struct Registers {
  Triple *thread, *block, *block_size, *grid_size;
  void* (*shared_segment)();
};

static int find_image(dl_phdr_info* library, size_t, void* base) {
  if (reinterpret_cast<char*>(library->dlpi_addr) != base) return 0;
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      low = std::min(low, library->dlpi_addr + segment.p_vaddr);
      high = std::max(high, library->dlpi_addr + segment.p_vaddr + segment.p_memsz);
      if (segment.p_flags & PF_W) {
        candidate.writable = reinterpret_cast<char*>(library->dlpi_addr + segment.p_vaddr);
        candidate.writable_end = candidate.writable + segment.p_memsz;
      }
    } else if (segment.p_type == PT_TLS) {
      candidate.shared_bytes = segment.p_memsz;
    }
  }
  candidate.image = reinterpret_cast<char*>(low);
  candidate.image_end = reinterpret_cast<char*>(high);
  return 1;
}

bool load_candidate(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    report_line(std::string("load_error ") + dlerror());
    return false;
  }
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  candidate.base = reinterpret_cast<char*>(map->l_addr);
  dl_iterate_phdr(find_image, candidate.base);
  const auto* registers = static_cast<const Registers*>(dlsym(library, "regraph_registers"));
  candidate.thread = registers->thread;
  candidate.block = registers->block;
  candidate.block_size = registers->block_size;
  candidate.grid_size = registers->grid_size;
  registers->shared_segment();
  void* segment = nullptr;
  dlinfo(library, RTLD_DI_TLS_DATA, &segment);
  candidate.shared = static_cast<char*>(segment);
  auto by_offset = [](const Symbol& left, const Symbol& right) { return left.offset < right.offset; };
  std::sort(candidate.variables.begin(), candidate.variables.end(), by_offset);
  std::sort(candidate.shared_variables.begin(), candidate.shared_variables.end(), by_offset);
  return true;
}

// The symbol that holds the offset, or else (`near`) the last one before it.
static const Symbol* holding(const std::vector<Symbol>& symbols, uint64_t offset, bool near = false) {
  auto after = std::upper_bound(symbols.begin(), symbols.end(), offset, [](uint64_t value, const Symbol& symbol) { return value < symbol.offset; });
  if (after == symbols.begin()) return nullptr;
  const Symbol& symbol = *std::prev(after);
  return near || offset < symbol.offset + symbol.size ? &symbol : nullptr;
}

const Symbol* variable_at(uint64_t offset) { return holding(candidate.variables, offset); }
const Symbol* variable_before(uint64_t offset) { return holding(candidate.variables, offset, true); }
const Symbol* shared_variable_before(uint64_t offset) { return holding(candidate.shared_variables, offset, true); }
const Symbol* shared_variable_at(uint64_t offset) { return holding(candidate.shared_variables, offset); }

}  // namespace regraph
