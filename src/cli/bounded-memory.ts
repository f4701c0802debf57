/*
 * Bounds memory that is not in use: V8's young generation, and what malloc keeps of buffers that are
 * free again. Both are read once, when a process starts: so the process begins anew, with flag and
 * environment, in its own place.
 */

const flag = "--max-semi-space-size"

/** Most that each half of the young generation of a console's main thread takes, MiB. */
const consoleMb = 4

/**
 * For glibc: buffers of 128 KiB and more go back to the system once they are free. By default that
 * threshold grows to 32 MiB with the first large bodies that are freed, and each thread may keep an
 * arena of its own. Other systems ignore these names.
 */
const malloc = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "131072",
  MALLOC_TRIM_THRESHOLD_: "262144"
}

/**
 * Starts this process anew with bounds on such memory if it is a console: at 32 MiB a half, young
 * garbage is a sixth of a console's memory, and bodies of an attack left 60 to 80 MiB with malloc.
 * Does nothing where somebody chose a size, where whoever started the process talks to it, and where
 * the system cannot replace a process, such as Windows.
 */
export const boundMemory = (): void => {
  const { argv, env, execArgv, execPath } = process
  const chosen = [...execArgv, env.NODE_OPTIONS ?? ""].some((text) => text.includes(flag))
  if (!argv.includes("console", 2) || chosen || process.connected) return
  try {
    const started = [execPath, `${flag}=${consoleMb}`, ...execArgv, ...argv.slice(1)]
    process.execve?.(execPath, started, { ...malloc, ...env })
  } catch {
    // It runs as well without: it takes more memory.
  }
}
