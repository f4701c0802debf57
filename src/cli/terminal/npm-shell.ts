import { readFileSync } from "node:fs"

const often = 250

/** Returns the command line of a process. Empty on systems other than Linux. */
const commandLine = (pid: number): ReadonlyArray<string> => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    return []
  }
}

/**
 * Calls `stop` when npm has been stopped. `npm start` and `npx` run a command in a shell and
 * forward signals to the shell only. The shell exits without signalling its child, and the worker
 * or the broker would keep running unnoticed.
 */
export const onNpmShellGone = (stop: () => void): void => {
  const shell = process.ppid
  const [program = "", option] = commandLine(shell)
  if (process.env.npm_command === undefined || option !== "-c" || !/(^|\/)sh$/.test(program)) return
  const watch = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(watch)
    stop()
  }, often)
  watch.unref()
}
