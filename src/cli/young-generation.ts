/*
 * Bounds V8's young generation. V8 reads its size once, when a process starts: so the process begins
 * anew, with the flag, in its own place.
 */

const flag = "--max-semi-space-size"

/** Most that each half of the young generation of a console's main thread takes, MiB. */
const consoleMb = 4

/**
 * Starts this process anew with a small young generation if it is a console: at 32 MiB a half, its
 * garbage is a sixth of a console's memory. Does nothing where somebody chose a size, where whoever
 * started the process talks to it, and where the system cannot replace a process, such as Windows.
 */
export const boundYoungGeneration = (): void => {
  const { argv, env, execArgv, execPath } = process
  const chosen = [...execArgv, env.NODE_OPTIONS ?? ""].some((text) => text.includes(flag))
  if (!argv.includes("console", 2) || chosen || process.connected) return
  try {
    process.execve?.(execPath, [execPath, `${flag}=${consoleMb}`, ...execArgv, ...argv.slice(1)])
  } catch {
    // It runs as well without: it takes more memory.
  }
}
