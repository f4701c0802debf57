import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout } from "node:timers/promises"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { findNatsServer } from "../src/broker/embedded/binary.ts"

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
  /** The same with other lines at the end of its configuration. */
  readonly restartWith: (config: string) => Promise<void>
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
  /** Its JetStream domain. (Default: none) */
  readonly domain?: string
  /** Bytes its store may take. (Default: what the server takes, most of the disk) */
  readonly maxStore?: number
  readonly env?: NodeJS.ProcessEnv
}

const living = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL")
})

const isOver = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
  if (isOver(child)) return
  // Its output has been read to the end by then, too.
  const exited = once(child, "close")
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
  const violations: Array<string> = []
  const lines = createInterface(child.stderr)
  lines.on("line", (line) => {
    if (/ Violation - /.test(line)) violations.push(line)
  })
  const port = await new Promise<number>((started, failed) => {
    let port = 0
    lines
      .on("line", (line) => {
        if (port !== 0 && line.includes("Server is ready")) return started(port)
        const listening = /Listening for client connections on \S+:(\d+)$/.exec(line)
        if (listening !== null) port = Number(listening[1])
        if (said.length < 100) said.push(line)
      })
      .once("close", () => failed(new Error(`nats-server did not start:\n${said.join("\n")}`)))
    child.once("error", failed)
  })
  return {
    child,
    port,
    /** What clients were refused for lack of permission, a line of its log each. All of it once it has ended. */
    violations: violations as ReadonlyArray<string>,
    end: () => end(child, "SIGTERM")
  }
}

/** Starts a server for tests; whoever starts it stops it. */
export const startServer = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const binary = await Effect.runPromise(findNatsServer())
  const directory = await mkdtemp(join(tmpdir(), "petrel-test-nats-"))
  const storeDir = join(directory, "store")
  const file = join(directory, "nats.conf")
  const domain = options.domain === undefined ? "" : `, domain: ${options.domain}`
  const maxStore = options.maxStore === undefined ? "" : `, max_file_store: ${options.maxStore}`
  const start = async (port: number, config = "") => {
    const lines = [
      `listen: "127.0.0.1:${port}"`,
      `jetstream { store_dir: ${JSON.stringify(storeDir)}${domain}${maxStore} }`,
      config,
      ""
    ]
    await writeFile(file, lines.join("\n"))
    return launch(binary.path, file, options.env)
  }
  const first = await start(-1, options.config)
  const { port } = first
  let child = first.child
  const restartWith = async (config?: string) => {
    await end(child, "SIGTERM")
    child = (await start(port, config)).child
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid ?? 0
    },
    storeDir,
    kill9: () => end(child, "SIGKILL"),
    restart: () => restartWith(options.config),
    restartWith,
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

/** Servers that keep copies of each other's streams. */
export interface TestCluster {
  /** All their addresses, with commas. */
  readonly url: string
  /** By the name that the broker calls each by. */
  readonly servers: ReadonlyMap<string, TestServer>
  /** Starts a leaf node without a JetStream of its own in front of one of the servers. */
  readonly startLeaf: (name: string) => Promise<TestLeaf>
  readonly stop: () => Promise<void>
}

/** A server that passes everything on to another one. */
export interface TestLeaf {
  readonly url: string
  readonly stop: () => Promise<void>
}

/** A port that was free a moment ago: the servers of a cluster must know each other's beforehand. */
const freePort = async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Waits until all servers take copies of streams: before, they do not know of each other. */
const untilTogether = async (url: string, size: number) => {
  const connection = await connect({ servers: url.split(",") })
  const jsm = await jetstreamManager(connection, { checkAPI: false, timeout: 500 })
  const tried = () =>
    jsm.streams.add({ name: "copied", subjects: ["copied"], num_replicas: size }).then(
      () => true,
      () => false
    )
  while (!(await tried())) await setTimeout(50)
  await jsm.streams.delete("copied")
  await connection.close()
}

/** Between servers without one, a leaf node passes no requests for JetStream on. */
const clusterDomain = "hub"

/** Starts a server that passes everything on, JetStream requests too, and waits until it does. */
const startLeaf = async (hub: number): Promise<TestLeaf> => {
  const binary = await Effect.runPromise(findNatsServer())
  const directory = await mkdtemp(join(tmpdir(), "petrel-test-leaf-"))
  const file = join(directory, "nats.conf")
  const lines = [
    'listen: "127.0.0.1:-1"',
    `leafnodes { remotes: [{ url: "nats://127.0.0.1:${hub}" }] }`,
    `default_js_domain: { "$G": ${clusterDomain} }`
  ]
  await writeFile(file, `${lines.join("\n")}\n`)
  const { end, port } = await launch(binary.path, file)
  const url = `nats://127.0.0.1:${port}`
  const connection = await connect({ servers: url })
  const jsm = await jetstreamManager(connection, { checkAPI: false, timeout: 500 })
  const passes = () =>
    jsm.getAccountInfo().then(
      () => true,
      () => false
    )
  while (!(await passes())) await setTimeout(50)
  await connection.close()
  return {
    url,
    stop: async () => {
      await end()
      await rm(directory, { recursive: true, force: true })
    }
  }
}

/** Starts servers that make a cluster; whoever starts it stops it. */
export const startCluster = async (size = 3): Promise<TestCluster> => {
  const ports = await Promise.all(Array.from({ length: size }, freePort))
  const leafPorts = await Promise.all(Array.from({ length: size }, freePort))
  const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(", ")
  const servers = new Map(
    await Promise.all(
      ports.map(async (port, index) => {
        const name = `n${index}`
        const cluster = `cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }`
        const leafs = `leafnodes { listen: "127.0.0.1:${leafPorts[index]}" }`
        const server = await startServer({
          domain: clusterDomain,
          config: `server_name: ${name}\n${cluster}\n${leafs}`
        })
        return [name, server] as const
      })
    )
  )
  const url = [...servers.values()].map(({ url }) => url).join(",")
  await untilTogether(url, size)
  return {
    url,
    servers,
    startLeaf: (name) => startLeaf(leafPorts[[...servers.keys()].indexOf(name)] ?? 0),
    stop: async () => {
      // In good order each would hand over what it leads, one after the other.
      await Promise.all([...servers.values()].map(({ kill9 }) => kill9()))
      await Promise.all([...servers.values()].map(({ stop }) => stop()))
    }
  }
}
