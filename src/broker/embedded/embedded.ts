import type { ChildProcess } from "node:child_process"
import { execFile, spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { totalmem } from "node:os"
import { join, resolve } from "node:path"
import type { Duration, Scope } from "effect"
import { Deferred, Effect, Schedule, Schema } from "effect"
import type { BrokerBinaryError } from "./binary.ts"
import { findNatsServer } from "./binary.ts"
import { makeDirectory } from "./make-directory.ts"
import type { ReportProgress } from "./source.ts"

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

/** The embedded broker did not start, and the message says what to do about it. */
export class BrokerStartError extends Schema.TaggedError<BrokerStartError>()("BrokerStartError", {
  message: Schema.String
}) {}

export interface EmbeddedOptions {
  /** Client port; 0 picks a free one. */
  readonly port: number
  /** Directory of the store, the generated configuration and the log; created if it is missing. */
  readonly dataDir: string
  /**
   * Listen address. Without a token the broker accepts everybody: any address but loopback is open
   * to all. (Default: 127.0.0.1)
   */
  readonly host?: string | undefined
  /** Token that clients must present; letters, digits, - or _. (Default: none) */
  readonly token?: string | undefined
  /** Maximum size of a message, bytes, headers included. (Default: 1 MiB) */
  readonly maxPayload?: number | undefined
  /** Maximum size of the store, bytes. (Default: nats-server's, three quarters of the free disk) */
  readonly maxStore?: number | undefined
  /** Path of the nats-server to run. (Default: the one that findNatsServer finds) */
  readonly binary?: string | undefined
  /** Time-out of the start; a large store is read first. (Default: 2 minutes) */
  readonly startTimeout?: Duration.Input | undefined
  readonly onProgress?: ReportProgress | undefined
}

export interface EmbeddedBroker {
  readonly url: string
  readonly pid: number
  /**
   * Waits until the broker has exited, for whatever reason, and returns its exit code; 128 + n
   * after signal n.
   */
  readonly exited: Effect.Effect<number>
}

/**
 * Shell script that runs a broker as long as the other end of descriptor 3 is open. The broker
 * stops when Petrel closes its end, and also when Petrel is killed.
 */
const keeper = `"$@" 3<&- & server=$!
(read -r line <&3; kill -TERM "$server") 2>/dev/null & reader=$!
exec 3<&-
wait "$server"; code=$?
kill "$reader" 2>/dev/null
exit $code`

const stopTimeout = "5 seconds"
const orphanTimeout = "10 seconds"
const pollInterval = "20 millis"
const logLimit = 10 * 1024 * 1024

const attempt = <A>(what: () => Promise<A>) =>
  Effect.tryPromise({
    try: what,
    catch: (cause) =>
      new BrokerStartError({
        message: `the broker's data directory cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`
      })
  })

const maxFileStore = ({ maxStore }: EmbeddedOptions): string =>
  maxStore === undefined ? "" : `, max_file_store: ${maxStore}`

const authorization = ({ token }: EmbeddedOptions): string =>
  token === undefined ? "" : `authorization { token: ${JSON.stringify(token)} }\n`

const configuration = (options: EmbeddedOptions, dataDir: string) => `# Written at each start.
server_name: "petrel"
host: ${JSON.stringify(options.host ?? "127.0.0.1")}
port: ${options.port === 0 ? -1 : options.port}
max_payload: ${options.maxPayload ?? 1024 * 1024}
jetstream { store_dir: ${JSON.stringify(dataDir)}${maxFileStore(options)} }
pid_file: ${JSON.stringify(join(dataDir, "nats-server.pid"))}
ports_file_dir: ${JSON.stringify(dataDir)}
${authorization(options)}`

/**
 * Memory limit of the broker: a quarter of the memory of this machine or container, in bytes,
 * between 256 MiB and 4 GiB.
 */
const memoryLimit = (): number => {
  const constrained = process.constrainedMemory()
  const available = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
  return Math.floor(Math.min(Math.max(available / 4, 256 * 2 ** 20), 4 * 2 ** 30))
}

const read = (path: string) => readFile(path, "utf8").catch(() => undefined)

/**
 * Waits for the former broker of a data directory to exit. nats-server does not lock its store, and
 * two on one store corrupt it. The broker of a Petrel that was just killed is about to exit; one
 * that stays belongs to a running Petrel.
 */
const awaitFormerBroker = Effect.fnUntraced(function* (
  dataDir: string,
  config: string,
  progress: ReportProgress | undefined
) {
  const pid = Number(yield* Effect.promise(() => read(join(dataDir, "nats-server.pid"))))
  if (!Number.isInteger(pid) || pid <= 0) return
  const alive = Effect.promise(() => runsWith(pid, config))
  if (!(yield* alive)) return
  progress?.(`waiting for the former broker of ${dataDir} to end (process ${pid})`)
  yield* alive.pipe(
    Effect.repeat({ while: (alive) => alive, schedule: Schedule.spaced(pollInterval) }),
    Effect.timeoutOrElse({
      duration: orphanTimeout,
      orElse: () =>
        Effect.fail(
          new BrokerStartError({
            message: `${dataDir} is in use by another Petrel's broker (process ${pid}): stop that one, or choose another data directory`
          })
        )
    })
  )
})

const prepare = async (options: EmbeddedOptions, dataDir: string, config: string) => {
  for (const name of await readdir(dataDir))
    if (name.endsWith(".ports")) await rm(join(dataDir, name), { force: true })
  await rm(join(dataDir, "nats-server.pid"), { force: true })
  // Remove the file first: an existing file keeps its mode.
  await rm(config, { force: true })
  await writeFile(config, configuration(options, dataDir), { mode: 0o600 })
  const log = join(dataDir, "nats-server.log")
  const size = await stat(log).then(
    (found) => found.size,
    () => 0
  )
  if (size <= logLimit) return { log, from: size }
  await rm(log)
  return { log, from: 0 }
}

interface RunningServer {
  readonly keeper: ChildProcess
  readonly exited: Deferred.Deferred<number>
}

const launch = (binary: string, config: string, log: string) =>
  Effect.suspend(() => {
    const exited = Deferred.makeUnsafe<number>()
    const output = openSync(log, "a")
    // Its own process group: Ctrl-C is for Petrel, which stops the broker last.
    const child = spawn("sh", ["-c", keeper, "petrel-broker", binary, "-c", config], {
      detached: true,
      stdio: ["ignore", output, output, "pipe"],
      env: { GOMEMLIMIT: String(memoryLimit()), ...process.env }
    })
    closeSync(output)
    child.once("error", () => Deferred.doneUnsafe(exited, Effect.succeed(127)))
    child.once("exit", (code, signal) =>
      Deferred.doneUnsafe(exited, Effect.succeed(code ?? (signal === "SIGKILL" ? 137 : 143)))
    )
    return Effect.succeed<RunningServer>({ keeper: child, exited })
  })

const stop = ({ keeper, exited }: RunningServer) =>
  Effect.suspend(() => {
    const channel = keeper.stdio[3]
    channel?.on("error", () => {})
    channel?.destroy()
    return Deferred.await(exited)
  }).pipe(
    Effect.timeoutOrElse({
      duration: stopTimeout,
      orElse: () =>
        Effect.suspend(() => {
          if (keeper.pid !== undefined) process.kill(-keeper.pid, "SIGKILL")
          return Deferred.await(exited)
        })
    }),
    Effect.ignoreCause
  )

const Ports = Schema.fromJsonString(Schema.Struct({ nats: Schema.NonEmptyArray(Schema.String) }))

const portsFile = /_(\d+)\.ports$/

/** Returns the broker's pid and port from its ports file; undefined until the file is complete. */
const listening = async (dataDir: string) => {
  for (const name of await readdir(dataDir)) {
    const pid = portsFile.exec(name)?.[1]
    const ports = Schema.decodeUnknownOption(Ports)(await read(join(dataDir, name)))
    if (pid !== undefined && ports._tag === "Some")
      return { pid: Number(pid), port: Number(new URL(ports.value.nats[0]).port) }
  }
  return undefined
}

/** True if a NATS server sends its greeting on the port. */
const greets = (host: string, port: number) =>
  new Promise<boolean>((done) => {
    const socket = connect(port, host)
    const end = (answer: boolean) => {
      socket.destroy()
      done(answer)
    }
    socket.setTimeout(5_000, () => end(false))
    socket.once("error", () => end(false))
    socket.once("data", (data) => end(data.toString("latin1").startsWith("INFO ")))
  })

const whyItStopped = async (options: EmbeddedOptions, log: { log: string; from: number }) => {
  const written = await readFile(log.log).catch(() => Buffer.alloc(0))
  const lines = written.subarray(log.from).toString().trim().split("\n")
  const said = lines.findLast((line) => /\[(FTL|ERR)\]/.test(line)) ?? lines.at(-1) ?? ""
  return /address already in use/.test(said)
    ? `port ${options.port} on ${options.host ?? "127.0.0.1"} is taken: stop what listens there, or choose another port`
    : `nats-server stopped while starting (${said.replace(/^.*\[(FTL|ERR)\] /, "")}): see ${log.log}`
}

const reachableAt = (host: string) => {
  if (host === "0.0.0.0") return "127.0.0.1"
  return host === "::" ? "::1" : host
}

/**
 * Starts a broker with JetStream, which runs until the scope closes, and waits until it accepts
 * connections. The broker does not receive the terminal's Ctrl-C. It does not outlive this process,
 * even if this process is killed. Closing the scope stops the broker and waits for its exit; after
 * 5 seconds the broker is killed.
 *
 * Fails if the port is taken, if the data directory is in use by the broker of another Petrel, or
 * if there is no usable nats-server.
 */
export const startEmbedded = Effect.fnUntraced(function* (
  options: EmbeddedOptions
): Effect.fn.Return<EmbeddedBroker, BrokerStartError | BrokerBinaryError, Scope.Scope> {
  const binary =
    options.binary ??
    (yield* findNatsServer(
      options.onProgress === undefined ? {} : { onProgress: options.onProgress }
    )).path
  yield* attempt(async () => makeDirectory(options.dataDir))
  const dataDir = yield* attempt(() => realpath(resolve(options.dataDir)))
  const config = join(dataDir, "nats-server.conf")
  yield* awaitFormerBroker(dataDir, config, options.onProgress)
  const log = yield* attempt(() => prepare(options, dataDir, config))

  const running = yield* Effect.acquireRelease(launch(binary, config, log.log), stop)
  const host = reachableAt(options.host ?? "127.0.0.1")
  const ready = Effect.gen(function* () {
    for (;;) {
      const found = yield* attempt(() => listening(dataDir))
      if (found !== undefined && (yield* Effect.promise(() => greets(host, found.port))))
        return found
      yield* Effect.sleep(pollInterval)
    }
  })
  const died = Deferred.await(running.exited).pipe(
    Effect.flatMap(() => Effect.promise(() => whyItStopped(options, log))),
    Effect.flatMap((message) => Effect.fail(new BrokerStartError({ message })))
  )
  const found = yield* Effect.raceFirst(ready, died).pipe(
    Effect.timeoutOrElse({
      duration: options.startTimeout ?? "2 minutes",
      orElse: () =>
        Effect.fail(
          new BrokerStartError({ message: `nats-server takes too long to start: see ${log.log}` })
        )
    })
  )
  const authority = host.includes(":") ? `[${host}]` : host
  return {
    url: `nats://${authority}:${found.port}`,
    pid: found.pid,
    exited: Deferred.await(running.exited)
  }
})
