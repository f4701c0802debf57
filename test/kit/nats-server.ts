import type { ChildProcess } from "node:child_process"
import { spawn, spawnSync } from "node:child_process"
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { closeSync, openSync, readFileSync, rmSync, writeSync } from "node:fs"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout } from "node:timers/promises"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { storeDirectory } from "./store-directory.ts"

/**
 * A nats-server with JetStream on a free port of 127.0.0.1, with its store in a temporary
 * directory.
 */
export interface TestServer {
  readonly url: string
  readonly port: number
  /** Of the current process: it changes with a restart. */
  readonly pid: number
  readonly storeDir: string
  /** Kills the server like a crash, and waits for its exit. The store remains. */
  readonly kill9: () => Promise<void>
  /** Starts the server again with the same port and store. Shuts it down first if it runs. */
  readonly restart: () => Promise<void>
  /** Restarts the server with other lines at the end of its configuration. */
  readonly restartWith: (config: string) => Promise<void>
  /** Has the running server read its configuration again, with other lines at its end. */
  readonly reloadWith: (config: string) => Promise<void>
  /** Freezes the server: connections stay open and nothing answers. */
  readonly pause: () => void
  readonly resume: () => void
  /** Fills the disk of its own. */
  readonly fillDisk: () => void
  /** Frees it again. */
  readonly emptyDisk: () => void
  /** Stops the server permanently and removes its directory. */
  readonly stop: () => Promise<void>
}

/** Returns whether a process still runs after SIGSTOP, on Linux: a signal takes time to arrive. */
const isRunning = (pid: number | undefined): boolean => {
  try {
    const [, state] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")
    return state?.startsWith("T") === false
  } catch {
    return false
  }
}

export interface TestServerOptions {
  /** Lines appended to its configuration, such as `max_payload: 8MB`. */
  readonly config?: string
  /** Its JetStream domain. (Default: none) */
  readonly domain?: string
  /** Size limit of its store, in bytes. (Default: more than tests reserve) */
  readonly maxStore?: number
  readonly env?: NodeJS.ProcessEnv
  /** Size in bytes of a disk that only its store is on. */
  readonly diskBytes?: number
}

const ownDisk = ["--user", "--map-root-user", "--mount", "sh", "-c"]

/** Whether this machine lets a test mount a disk of its own. */
export const canMount = (): boolean =>
  spawnSync("unshare", [...ownDisk, "mount -t tmpfs -o size=1m tmpfs /mnt"]).status === 0

/** Mounts a disk at a directory, which no process sees but those that run on it. */
export const mountDisk = async (bytes: number, directory: string) => {
  await mkdir(directory, { recursive: true })
  const mount = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec sleep infinity'
  const holder = spawn("unshare", [...ownDisk, mount, "sh", `${bytes}`, directory], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  living.set(holder, directory)
  await once(holder.stdout, "data")
  const filler = join(`/proc/${holder.pid}/root`, directory, "filler")
  return {
    /** The command that runs a program on the disk. */
    within: (program: string) =>
      ["nsenter", "--preserve-credentials", "-U", "-m", "-t", `${holder.pid}`, program] as const,
    fill: () => {
      const file = openSync(filler, "w")
      try {
        while (true) writeSync(file, Buffer.alloc(4_096))
      } catch {
        closeSync(file)
      }
    },
    empty: () => rmSync(filler),
    remove: () => end(holder, "SIGKILL")
  }
}

const living = new Map<ChildProcess, string>()
process.once("exit", () => {
  for (const child of living.keys()) child.kill("SIGKILL")
  // A run that is broken off would leave its stores in memory.
  for (const directory of living.values()) rmSync(directory, { recursive: true, force: true })
})

const isOver = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
  if (isOver(child)) return
  // At "close", its output has been read to the end, too.
  const exited = once(child, "close")
  child.kill(signal)
  // A server may hang, as one whose disk was full.
  await Promise.race([exited, setTimeout(10_000, undefined, { ref: false })])
  child.kill("SIGKILL")
  await exited
}

/**
 * Several servers share the machine's cores with the tests: one thread each, and rarer collections,
 * cost half of the CPU time that a server takes otherwise to set up its streams.
 */
const oneThread = { GOMAXPROCS: "1", GOGC: "400" }

/**
 * Starts `binary` with a configuration file, in that file's directory, and waits until it is ready.
 *
 * @param within the command that starts it. (Default: its path)
 */
export const launch = async (
  binary: string,
  config: string,
  env: NodeJS.ProcessEnv = {},
  within: (binary: string) => readonly [string, ...ReadonlyArray<string>] = (path) => [path]
) => {
  const [program, ...args] = within(binary)
  const child = spawn(program, [...args, "-c", config], {
    cwd: dirname(config),
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...oneThread, ...env }
  })
  living.set(child, dirname(config))
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
    /** Permission violations of clients, one line of its log each. Complete once it has exited. */
    violations: violations as ReadonlyArray<string>,
    /** Reads the configuration file again, and waits until the new one applies. */
    reload: () =>
      new Promise<void>((reloaded, failed) => {
        const hear = (line: string) => {
          const isDone = line.includes("Reloaded server configuration")
          if (!isDone && !line.includes("Failed to reload")) return
          lines.off("line", hear)
          if (isDone) reloaded()
          else failed(new Error(line))
        }
        lines.on("line", hear)
        child.kill("SIGHUP")
      }),
    end: () => end(child, "SIGTERM")
  }
}

/** Each search starts the binary, to ask for its version. */
let binary: ReturnType<typeof search> | undefined
const search = () => Effect.runPromise(findNatsServer())
const found = () => {
  binary ??= search()
  return binary
}

/** Streams reserve space, far more than tests fill. Left alone, a server offers what is free. */
const plenty = 256 * 1024 ** 3

/** Starts a server for tests. The caller stops it. */
export const startServer = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const binary = await found()
  const directory = await storeDirectory("petrel-test-nats-")
  const storeDir = join(directory, "store")
  const file = join(directory, "nats.conf")
  const domain = options.domain === undefined ? "" : `, domain: ${options.domain}`
  const maxStore = `, max_file_store: ${options.maxStore ?? plenty}`
  const disk =
    options.diskBytes === undefined ? undefined : await mountDisk(options.diskBytes, storeDir)
  const configure = (port: number, config = "") => {
    const lines = [
      `listen: "127.0.0.1:${port}"`,
      `jetstream { store_dir: ${JSON.stringify(storeDir)}${maxStore}${domain} }`,
      config,
      ""
    ]
    return writeFile(file, lines.join("\n"))
  }
  const start = async (port: number, config?: string) => {
    await configure(port, config)
    return launch(binary.path, file, options.env, disk?.within)
  }
  const port = await freePort()
  let { child, reload } = await start(port, options.config)
  const restartWith = async (config?: string) => {
    await end(child, "SIGTERM")
    const started = await start(port, config)
    child = started.child
    reload = started.reload
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
    reloadWith: async (config) => {
      await configure(port, config)
      await reload()
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
      await disk?.remove()
      await rm(directory, { recursive: true, force: true })
    },
    fillDisk: () => disk?.fill(),
    emptyDisk: () => disk?.empty()
  }
}

/** Servers that replicate their streams. */
export interface TestCluster {
  /** The addresses of all servers, comma-separated. */
  readonly url: string
  /** The servers by their names in the cluster. */
  readonly servers: ReadonlyMap<string, TestServer>
  /** Starts a leaf node without JetStream, connected to one of the servers. */
  readonly startLeaf: (name: string) => Promise<TestLeaf>
  readonly stop: () => Promise<void>
}

/** A leaf node, which forwards everything to a server. */
export interface TestLeaf {
  readonly url: string
  readonly stop: () => Promise<void>
}

/**
 * Below those that Linux gives to outgoing connections: one of these would take the port of a server
 * that is restarted, or that of a cluster's server before it starts.
 */
const servicePorts = [10_000, 32_000] as const

/**
 * Returns a port that was free a moment ago. The servers of a cluster must know each other's ports
 * in advance.
 */
export const freePort = async (): Promise<number> => {
  const port = randomInt(...servicePorts)
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true))
  })
  if (!isFree) return freePort()
  server.close()
  await once(server, "close")
  return port
}

/**
 * Waits until all servers accept replicas of streams. Before that, they have not discovered each
 * other.
 */
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

/** Without a domain on the servers, a leaf node forwards no JetStream requests. */
const clusterDomain = "hub"

/** Starts a leaf node and waits until it forwards JetStream requests. */
const startLeaf = async (hub: number): Promise<TestLeaf> => {
  const binary = await found()
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

/** Starts the servers of a cluster. The caller stops it. */
export const startCluster = async (
  size = 3,
  options: Pick<TestServerOptions, "diskBytes" | "maxStore"> = {}
): Promise<TestCluster> => {
  const all = new Set<number>()
  while (all.size < 2 * size) all.add(await freePort())
  const [ports, leafPorts] = [[...all].slice(0, size), [...all].slice(size)]
  const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(", ")
  const servers = new Map(
    await Promise.all(
      ports.map(async (port, index) => {
        const name = `n${index}`
        const cluster = `cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }`
        const leafs = `leafnodes { listen: "127.0.0.1:${leafPorts[index]}" }`
        const server = await startServer({
          ...options,
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
      // On a graceful shutdown each server would transfer its leaderships, one after the other.
      await Promise.all([...servers.values()].map(({ kill9 }) => kill9()))
      await Promise.all([...servers.values()].map(({ stop }) => stop()))
    }
  }
}
