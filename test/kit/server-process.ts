import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { setTimeout } from "node:timers/promises"

/** Whom a server runs as: some refuse to run as root. Undefined for the user of the tests. */
export interface ServerUser {
  readonly uid: number
  readonly gid: number
}

/** Returns the user of that name where the tests run as root, which may become another one. */
export const serverUser = (name: string): ServerUser | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string) =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }))
  return { uid: idOf("-u"), gid: idOf("-g") }
}

/** Returns the path of a program, of one of these folders or of PATH. */
export const programPath = (
  program: string,
  folders: ReadonlyArray<string> = []
): string | undefined =>
  [...folders, ...(process.env.PATH ?? "").split(delimiter)]
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path))

/** Returns a port of 127.0.0.1 that nothing listens at. */
export const freePort = async (): Promise<number> => {
  const server = createServer()
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

const living = new Set<ChildProcess>()
const folders = new Set<string>()
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL")
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Makes a folder that is removed at the end of the process, and belongs to the server's user. */
export const serverFolder = (name: string, user?: ServerUser): string => {
  const folder = mkdtempSync(join(tmpdir(), `petrel-test-${name}-`))
  folders.add(folder)
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  return folder
}

export const removeServerFolder = (folder: string): void => {
  rmSync(folder, { recursive: true, force: true })
  folders.delete(folder)
}

export interface ServerProcess {
  readonly pid: number
  /** Ends the process, and waits for its exit. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>
}

/**
 * Starts a server and waits until it answers.
 *
 * @param answers resolves to whether it can be used.
 * @throws with the end of its output, if it exits first or does not answer within 60 s.
 */
export const startServer = async (
  command: string,
  args: ReadonlyArray<string>,
  options: {
    readonly user: ServerUser | undefined
    readonly cwd: string
    readonly env?: NodeJS.ProcessEnv
  },
  answers: () => Promise<boolean>
): Promise<ServerProcess> => {
  const child = spawn(command, args, {
    ...options.user,
    cwd: options.cwd,
    env: options.env,
    stdio: ["ignore", "pipe", "pipe"]
  })
  living.add(child)
  let output = ""
  const keep = (chunk: Buffer) => {
    output = `${output}${chunk}`.slice(-4_000)
  }
  child.stdout.on("data", keep)
  child.stderr.on("data", keep)
  let isOver = false
  const exited = once(child, "close").then(() => {
    isOver = true
    living.delete(child)
  })
  const deadline = Date.now() + 60_000
  while (!(await answers())) {
    if (isOver || Date.now() > deadline) {
      child.kill("SIGKILL")
      await exited
      throw new Error(`${command} ${isOver ? "ended" : "did not answer"}: ${output}`)
    }
    await Promise.race([exited, setTimeout(20)])
  }
  return {
    pid: child.pid ?? 0,
    end: async (signal) => {
      if (!isOver) child.kill(signal)
      await exited
    }
  }
}
