import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"

const commandLine = async (pid: number): Promise<string> => {
  if (process.platform === "linux") return readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")
  return new Promise((done) =>
    execFile("ps", ["-ww", "-o", "command=", "-p", String(pid)], (_error, stdout) => done(stdout))
  )
}

/**
 * True if the process `pid` is alive and was started with `argument`. A pid alone proves little:
 * the system may have reused it since.
 */
export const runsWith = async (pid: number, argument: string): Promise<boolean> =>
  (await commandLine(pid)).includes(argument)
