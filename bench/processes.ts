/* The processes of a measurement, and their CPU time and memory. */
import { fork, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { Program } from "./program.ts"
import type { Requested, Requesting } from "./programs/api-load.ts"
import type { Asked, Asking } from "./programs/asker.ts"
import type { Attacked, Attacking } from "./programs/attackers.ts"
import type { Posted, Posting } from "./programs/limit.ts"
import type { NaivelySent, NaiveSending } from "./programs/naive.ts"
import type { Neighboured, Neighbouring } from "./programs/neighbour.ts"
import type { Published, Publishing } from "./programs/publisher.ts"
import type { ReadAll, Reading } from "./programs/reader.ts"
import type { Behaviour, Counted, Question } from "./programs/receiver.ts"
import type { Hooked, Hooking } from "./programs/webhooks.ts"

const pathOf = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** A program of the benchmark. It handles one request at a time. */
interface OwnProgram {
  readonly pid: number
  /** Returns its next message. Fails if the program exits instead. */
  readonly next: <A>() => Promise<A>
  readonly ask: <A>(question: object) => Promise<A>
}

const startProgram = (name: string, args: ReadonlyArray<string> = []) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      // The same flags as a worker, for a fair comparison.
      const execArgv = ["--no-allocation-site-pretenuring", "--heap-growing-percent=100"]
      const child = fork(pathOf(`programs/${name}`), args, { execArgv })
      const answer = <A>(question?: object) =>
        new Promise<A>((resolve, reject) => {
          const ended = () => reject(new Error(`${name} has ended`))
          child.once("exit", ended)
          child.once("message", (message) => {
            child.off("exit", ended)
            resolve(message as A)
          })
          if (question !== undefined)
            child.send(question, (error) => {
              if (error !== null) ended()
            })
        })
      const next = <A>() => answer<A>()
      const ask = <A>(question: object) => answer<A>(question)
      return { child, pid: child.pid ?? 0, next, ask }
    }),
    ({ child }) =>
      Effect.promise(async () => {
        if (child.connected) child.disconnect()
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
      })
  ).pipe(Effect.map((program): OwnProgram => program))

/** Time without a request after which missing requests are given up, ms. */
const patience = 120_000

/** The target of the requests. */
export interface Receiver {
  readonly pid: number
  readonly url: string
  readonly count: () => Promise<Counted>
  /** Resets the counters. Returns the previous counts. */
  readonly reset: () => Promise<Counted>
  readonly behave: (as: Behaviour) => Promise<Counted>
  /** Waits until this many requests are answered. Fails if no more arrive. */
  readonly received: (requests: number) => Promise<Counted>
}

export const startReceiver = Effect.fnUntraced(function* () {
  const program = yield* startProgram("receiver.ts")
  const { port } = yield* Effect.promise(() => program.next<{ port: number }>())
  const ask = (question: Question) => program.ask<Counted>(question)
  const receiver: Receiver = {
    pid: program.pid,
    url: `http://127.0.0.1:${port}`,
    count: () => ask({ do: "count" }),
    reset: () => ask({ do: "reset" }),
    behave: (as) => ask({ do: "behave", as }),
    received: async (requests) => {
      let so = { far: 0, since: performance.now() }
      for (;;) {
        const counted = await ask({ do: "count" })
        if (counted.requests >= requests) return counted
        const now = performance.now()
        if (counted.requests > so.far) so = { far: counted.requests, since: now }
        else if (now - so.since > patience)
          throw new Error(
            `nothing has arrived for ${patience / 1000} s, ${requests - so.far} of ${requests} deliveries are missing`
          )
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }
  return receiver
})

/** Generates the load on a broker. */
export interface Publisher {
  readonly pid: number
  readonly publish: (what: Publishing) => Promise<Published>
}

export const startPublisher = Effect.fnUntraced(function* (nats: string) {
  const { ask, next, pid } = yield* startProgram("publisher.ts", [nats])
  yield* Effect.promise(next)
  const publisher: Publisher = { pid, publish: (what) => ask<Published>(what) }
  return publisher
})

/** An application that publishes with the NATS client. */
export interface JsPublisher {
  readonly pid: number
  /** Resolves once all are acknowledged. */
  readonly publish: (what: Publishing) => Promise<unknown>
}

export const startJsPublisher = Effect.fnUntraced(function* (nats: string) {
  const { ask, next, pid } = yield* startProgram("js-publisher.ts", [nats])
  yield* Effect.promise(next)
  const publisher: JsPublisher = { pid, publish: (what) => ask(what) }
  return publisher
})

/** The bare loop of requests that Petrel is compared with. */
export interface Limit {
  readonly pid: number
  readonly post: (what: Posting) => Promise<Posted>
}

export const startLimit = Effect.fnUntraced(function* (receiver: Receiver) {
  const { ask, next, pid } = yield* startProgram("limit.ts", [receiver.url])
  yield* Effect.promise(next)
  const limit: Limit = { pid, post: (what) => ask<Posted>(what) }
  return limit
})

/** A sender without any of Petrel's care. */
export interface Naive {
  readonly pid: number
  readonly send: (what: NaiveSending) => Promise<NaivelySent>
}

export const startNaive = Effect.fnUntraced(function* (receiver: Receiver) {
  const { ask, next, pid } = yield* startProgram("naive.ts", [receiver.url])
  yield* Effect.promise(next)
  const naive: Naive = { pid, send: (what) => ask<NaivelySent>(what) }
  return naive
})

/** A program that reads streams and discards the messages. */
export interface Reader {
  readonly pid: number
  readonly read: (what: Reading) => Promise<ReadAll>
}

export const startReader = Effect.fnUntraced(function* (nats: string) {
  const { ask, next, pid } = yield* startProgram("reader.ts", [nats])
  yield* Effect.promise(next)
  const reader: Reader = { pid, read: (what) => ask<ReadAll>(what) }
  return reader
})

/** A worker of Petrel. */
export interface Worker {
  readonly pid: number
  /** Time from its start until it delivered, ms. */
  readonly after: number
}

/** Starts a command that says on stdout when it is ready. It is stopped when the scope closes. */
const startPetrel = Effect.fnUntraced(function* (args: ReadonlyArray<string>, ready: string) {
  const program = yield* Program
  return yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const started = performance.now()
      const child = spawn(process.execPath, [program, ...args, "--json"], {
        stdio: ["ignore", "pipe", "ignore"]
      })
      for await (const text of child.stdout
        .setEncoding("utf8")
        .iterator({ destroyOnReturn: false }))
        if (String(text).includes(`"${ready}"`)) break
      if (child.exitCode !== null) throw new Error(`petrel ${args[0]} has ended`)
      child.stdout.resume()
      return { child, pid: child.pid ?? 0, after: performance.now() - started }
    }),
    ({ child }) =>
      Effect.promise(async () => {
        child.kill("SIGTERM")
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
      })
  ).pipe(Effect.map(({ after, pid }): Worker => ({ pid, after })))
})

/** Starts a worker that may send to loopback addresses. It is stopped when the scope closes. */
export const startWorker = (nats: string, options: ReadonlyArray<string> = []) =>
  startPetrel(
    ["worker", "--nats", nats, "--allow-network", "127.0.0.0/8", ...options],
    "delivering"
  )

/** Starts a relay of the outbox of a database. It is stopped when the scope closes. */
export const startRelay = (nats: string, database: string) =>
  startPetrel(["outbox", "--nats", nats, "--database", database], "publishing")

/** A console that serves the HTTP API. */
export interface Console {
  readonly pid: number
  readonly address: string
}

/** Starts a console on a free port. It is stopped when the scope closes. */
export const startConsole = Effect.fnUntraced(function* (nats: string) {
  const program = yield* Program
  return yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const data = mkdtempSync(join(tmpdir(), "petrel-bench-console-"))
      const child = spawn(
        process.execPath,
        [
          program,
          ...["console", "--listen", "127.0.0.1:0", "--nats", nats, "--json"],
          ...["--data", data]
        ],
        { stdio: ["ignore", "pipe", "ignore"] }
      )
      let address: string | undefined
      for await (const text of child.stdout
        .setEncoding("utf8")
        .iterator({ destroyOnReturn: false })) {
        address = /http:\/\/[\d.:]+/.exec(String(text))?.[0]
        if (address !== undefined) break
      }
      if (address === undefined) throw new Error("the console has ended")
      child.stdout.resume()
      return { child, data, pid: child.pid ?? 0, address }
    }),
    ({ child, data }) =>
      Effect.promise(async () => {
        child.kill("SIGTERM")
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
        rmSync(data, { recursive: true, force: true })
      })
  ).pipe(Effect.map(({ address, pid }): Console => ({ address, pid })))
})

/** Tenants that attack a console. */
export interface Attackers {
  readonly pid: number
  readonly attack: (how: Attacking) => Promise<Attacked>
}

export const startAttackers = Effect.fnUntraced(function* (address: string, nats: string) {
  const { ask, next, pid } = yield* startProgram("attackers.ts", [address, nats])
  yield* Effect.promise(next)
  const attackers: Attackers = { pid, attack: (how) => ask<Attacked>(how) }
  return attackers
})

/** A tenant that publishes over HTTP on a schedule. */
export interface Neighbour {
  readonly pid: number
  readonly publish: (what: Neighbouring) => Promise<Neighboured>
}

export const startNeighbour = Effect.fnUntraced(function* (
  address: string,
  token: string,
  tenant: string
) {
  const { ask, next, pid } = yield* startProgram("neighbour.ts", [address, token, tenant])
  yield* Effect.promise(next)
  const neighbour: Neighbour = { pid, publish: (what) => ask<Neighboured>(what) }
  return neighbour
})

/** Asks a console questions. */
export interface Asker {
  readonly pid: number
  readonly ask: (what: Asking) => Promise<Asked>
}

/** @param broker the process of the broker, whose CPU is looked at. */
export const startAsker = Effect.fnUntraced(function* (
  console: Console,
  token: string,
  broker: number
) {
  const processes = [console.pid, broker].map(String)
  const { ask, next, pid } = yield* startProgram("asker.ts", [console.address, token, ...processes])
  yield* Effect.promise(next)
  const asker: Asker = { pid, ask: (what) => ask<Asked>(what) }
  return asker
})

/** Publishes over HTTP. */
export interface ApiLoad {
  readonly pid: number
  readonly publish: (what: Requesting) => Promise<Requested>
}

export const startApiLoad = Effect.fnUntraced(function* (address: string, token: string) {
  const { ask, next, pid } = yield* startProgram("api-load.ts", [address, token])
  yield* Effect.promise(next)
  const load: ApiLoad = { pid, publish: (what) => ask<Requested>(what) }
  return load
})

/** Sends webhooks to a gateway. */
export interface Webhooks {
  readonly pid: number
  readonly send: (what: Hooking) => Promise<Hooked>
}

export const startWebhooks = Effect.fnUntraced(function* (address: string, secret: string) {
  const { ask, next, pid } = yield* startProgram("webhooks.ts", [address, secret])
  yield* Effect.promise(next)
  const webhooks: Webhooks = { pid, send: (what) => ask<Hooked>(what) }
  return webhooks
})

/** Starts `petrel ingest` on a free port. */
export const startGateway = Effect.fnUntraced(function* (nats: string) {
  const program = yield* Program
  return yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(
        process.execPath,
        [program, "ingest", "--listen", "127.0.0.1:0", "--nats", nats, "--json"],
        { stdio: ["ignore", "pipe", "ignore"] }
      )
      const [line] = await once(child.stdout.setEncoding("utf8"), "data")
      const address = /http:\/\/[\d.:]+/.exec(String(line))?.[0]
      if (address === undefined) throw new Error("the gateway has ended")
      child.stdout.resume()
      return { child, pid: child.pid ?? 0, address }
    }),
    ({ child }) =>
      Effect.promise(async () => {
        child.kill("SIGTERM")
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
      })
  )
})

/** Returns the peak resident memory of a process, MiB, from /proc (0 without /proc). */
const peakOf = (pid: number): number => statusOf(pid, /VmHWM:\s+(\d+)/)

const runToEnd = async (args: ReadonlyArray<string>) => {
  const started = performance.now()
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"]
  })
  let printed = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text
  })
  const pid = child.pid ?? 0
  let took = { cpu: 0, peak: 0 }
  const looking = setInterval(() => {
    took = { cpu: Math.max(took.cpu, cpuOf(pid)), peak: Math.max(took.peak, peakOf(pid)) }
  }, 20)
  await once(child, "close")
  clearInterval(looking)
  return { ...took, printed, seconds: (performance.now() - started) / 1000 }
}

/** Runs a command of Petrel until it exits. Returns its output, and what it took. */
export const runPetrelCommand = (args: ReadonlyArray<string>) =>
  Effect.flatMap(Program, (program) => Effect.promise(() => runToEnd([program, ...args])))

/** Returns the CPU time of another process in µs, from /proc (0 without /proc, as on a Mac). */
export const cpuOf = (pid: number): number => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
    return (Number(fields[11]) + Number(fields[12])) * 10_000
  } catch {
    return 0
  }
}

/** Returns the resident memory of another process in MiB, from /proc (0 without /proc). */
export const memoryOf = (pid: number): number => statusOf(pid, /VmRSS:\s+(\d+)/)

/** Returns how many bytes another process has written to disk, from /proc (0 without /proc). */
export const writtenBy = (pid: number): number => countedBy(pid, /^write_bytes: (\d+)/m)

/** Returns how many bytes another process has read, from files and sockets (0 without /proc). */
export const readBy = (pid: number): number => countedBy(pid, /^rchar: (\d+)/m)

const countedBy = (pid: number, what: RegExp): number => {
  try {
    return Number(what.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1] ?? 0)
  } catch {
    return 0
  }
}

const statusOf = (pid: number, what: RegExp): number => {
  try {
    return Number(what.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}
