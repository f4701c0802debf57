import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { findNatsServer } from "../src/broker/binary.ts"

/** A real nats-server with JetStream on a free port of 127.0.0.1, its store in a temporary directory. */
export interface TestServer {
  readonly url: string
  readonly port: number
  /** Of the process that runs now: another one after a restart. */
  readonly pid: number
  readonly storeDir: string
  /** Kills it as a crash would, and waits for its end. The store stays. */
  readonly kill9: () => Promise<void>
  /** Starts it again with the same port and store, after stopping it in good order if it runs. */
  readonly restart: () => Promise<void>
  /** Freezes it: connections stay open and nothing answers. */
  readonly pause: () => void
  readonly resume: () => void
  /** Ends it for good and removes its directory. */
  readonly stop: () => Promise<void>
}

/** On Linux, whether a process that was told to stop still runs: a signal takes its time to arrive. */
const isRunning = (pid: number | undefined): boolean => {
  try {
    const [, state] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")
    return state?.startsWith("T") === false
  } catch {
    return false
  }
}

export interface TestServerOptions {
  /** Lines for the end of its configuration, such as `max_payload: 8MB`. */
  readonly config?: string
  readonly env?: NodeJS.ProcessEnv
}

const living = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL")
})

const isOver = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
  if (isOver(child)) return
  const exited = once(child, "exit")
  child.kill(signal)
  await exited
}

/** Starts `binary` with a configuration file, in that file's directory, and waits until it is ready. */
export const launch = async (binary: string, config: string, env: NodeJS.ProcessEnv = {}) => {
  const child = spawn(binary, ["-c", config], {
    cwd: dirname(config),
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...env }
  })
  living.add(child)
  child.once("exit", () => living.delete(child))
  const said: Array<string> = []
  const port = await new Promise<number>((started, failed) => {
    let port = 0
    createInterface(child.stderr)
      .on("line", (line) => {
        if (port !== 0 && line.includes("Server is ready")) return started(port)
        const listening = /Listening for client connections on \S+:(\d+)$/.exec(line)
        if (listening !== null) port = Number(listening[1])
        if (said.length < 100) said.push(line)
      })
      .once("close", () => failed(new Error(`nats-server did not start:\n${said.join("\n")}`)))
    child.once("error", failed)
  })
  return { child, port, end: () => end(child, "SIGTERM") }
}

/** Starts a server for tests; whoever starts it stops it. */
export const startServer = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const binary = await Effect.runPromise(findNatsServer())
  const directory = await mkdtemp(join(tmpdir(), "petrel-test-nats-"))
  const storeDir = join(directory, "store")
  const file = join(directory, "nats.conf")
  const start = async (port: number) => {
    const lines = [
      `listen: "127.0.0.1:${port}"`,
      `jetstream { store_dir: ${JSON.stringify(storeDir)} }`,
      options.config ?? "",
      ""
    ]
    await writeFile(file, lines.join("\n"))
    return launch(binary.path, file, options.env)
  }
  const first = await start(-1)
  const { port } = first
  let child = first.child
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid ?? 0
    },
    storeDir,
    kill9: () => end(child, "SIGKILL"),
    restart: async () => {
      await end(child, "SIGTERM")
      child = (await start(port)).child
    },
    pause: () => {
      child.kill("SIGSTOP")
      while (isRunning(child.pid)) {}
    },
    resume: () => {
      child.kill("SIGCONT")
    },
    stop: async () => {
      child.kill("SIGCONT")
      await end(child, "SIGTERM")
      await rm(directory, { recursive: true, force: true })
    }
  }
}
