import { readFileSync } from "node:fs"

const often = 250

/** The command line of a process, where the system tells it (Linux). */
const commandLine = (pid: number): ReadonlyArray<string> => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    return []
  }
}

/**
 * Notices that npm was told to stop. `npm start` and `npx` run a command in a shell and pass
 * signals on to that shell, which dies of them without telling its child: the worker or the broker
 * would run on unseen.
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
