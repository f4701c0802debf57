import { access } from "node:fs/promises"
import { join, resolve } from "node:path"
import {
  Clock,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Option,
  References,
  Stream
} from "effect"
import { Command, Flag, GlobalFlag } from "effect/cli"
import { IpNetwork } from "effect/net"
import { isLoopback } from "../../../api/addresses.ts"
import { Broker } from "../../../broker/broker.ts"
import type { BrokerOptions } from "../../../broker/connection.ts"
import { abandon, connectTo } from "../../../broker/connection.ts"
import type { EmbeddedBroker } from "../../../broker/embedded/embedded.ts"
import { startEmbedded } from "../../../broker/embedded/embedded.ts"
import { type ReadMessage, readStream } from "../../../broker/scan.ts"
import { maxStoreBytes, minStoreBytes } from "../../../broker/storage-limits.ts"
import { defaultLoad } from "../../../delivery/scheduling/capacity-pool.ts"
import { isSuccess } from "../../../domain/fact.ts"
import type { StoredFact } from "../../../history/read.ts"
import { parseFact } from "../../../history/read.ts"
import { bytesExpected, bytesText, readBytes } from "../../../text/quantities.ts"
import {
  type MetricsChoice,
  metricsFlags,
  startMetrics,
  tracesFlag,
  tracesOtlpFlag
} from "../../flags/metrics-flags.ts"
import { isSet, maybe, repeated } from "../../flags/shared.ts"
import { visible } from "../../format/visible.ts"
import { setCollector } from "../../memory.ts"
import { type OpenFiles, openFileLimit, workerLoad } from "../../open-files.ts"
import { Refused, refusal } from "../../refused.ts"
import { petrel } from "../../root-command.ts"
import { makeCountedOutput } from "../../terminal/counted-output.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { defaultListen, readListen } from "../console/console.ts"
import { reportFact } from "../history/history.ts"
import { type DevToken, readDevToken, serveDevConsole, withToken } from "./console.ts"
import { initDevStore, lockDataDirectory, type StoreSize, storeSize } from "./data-folder.ts"
import { publishSamples, sampleBy, sampleIds, serveSample, welcome } from "./welcome.ts"

const loopback = ["127.0.0.0/8", "::1/128"].map(IpNetwork.fromStringUnsafe)

/** Time for requests in flight when stopping, ms: Ctrl-C takes effect within 2 s. */
const stopWithin = 1_400
/** How long to wait for the sample events before the next steps are shown. */
const sampleTime = "20 seconds"
/** Pause between two looks whether the broker's files are there, ms. */
const storeLookMs = 2_000
/** Delivery starts within this time, unless the leases of a killed worker must expire first. */
const leaseTime = "2 seconds"

/** Returns true for facts worth showing on a terminal: outcomes, changes by others, plans without endpoints. */
const isNews = ({ fact }: StoredFact): boolean =>
  fact.kind === "routed" ? fact.plan?.endpoints.length === 0 : fact.by !== sampleBy

/**
 * Prints new facts. `samplesDelivered` succeeds when all sample events are delivered; where nothing
 * is printed, facts are read no longer than that, because reading them takes as much as delivering.
 */
const tell = Effect.fnUntraced(function* (quiet: boolean, samples: ReadonlySet<string>) {
  const { json } = yield* petrel
  const counted = yield* makeCountedOutput
  const since = yield* Clock.currentTimeMillis
  const missing = new Set(samples)
  const delivered = yield* Deferred.make<void>()
  const { names } = yield* Broker
  const facts = readStream({
    stream: names.history,
    subjects: [names.subjects.allFacts],
    fromTime: since,
    follow: true
  })
  const show = Effect.fnUntraced(function* (message: ReadMessage, isCounted: boolean) {
    const stored = Option.getOrUndefined(parseFact(message.string(), message.seq))
    if (stored === undefined) return
    if (isCounted && (json || isNews(stored))) yield* reportFact(stored)
    if (isSuccess(stored.fact.kind)) missing.delete(stored.fact.event ?? "")
    if (missing.size === 0) yield* Deferred.succeed(delivered, undefined)
  })
  const telling = yield* facts.pipe(
    Stream.runForEach((message) => {
      // A fact is parsed only where it is needed: that takes as long as a delivery.
      const isShown = !quiet && (json || counted.note(kindIn(message)))
      return isShown || missing.size > 0 ? show(message, isShown) : Effect.void
    }),
    (reading) =>
      quiet
        ? Effect.andThen(Effect.raceFirst(reading, Deferred.await(delivered)), Effect.never)
        : reading,
    Effect.forkScoped
  )
  return { ended: Fiber.join(telling), samplesDelivered: Deferred.await(delivered) }
})

/** The kind of a fact is the last token of its subject. */
const kindIn = ({ subject }: ReadMessage): string => subject.slice(subject.lastIndexOf(".") + 1)

interface DevOptions extends MetricsChoice {
  readonly data: string
  readonly port: number
  /** Where the HTTP API listens. */
  readonly listen: string
  readonly store: number | undefined
  readonly withSample: boolean
  /** Providers whose webhooks come in. */
  readonly sources: ReadonlyArray<string>
  readonly asksForToken: boolean
  readonly quiet: boolean
  readonly traces: boolean
  readonly tracesOtlp: string | undefined
}

/** Suppresses log lines that repeat a fact, which is printed on the same terminal. */
const withoutRepeatedLogs = Effect.updateService(
  Logger.CurrentLoggers,
  (loggers: ReadonlySet<Logger.Logger<unknown, unknown>>) =>
    new Set(
      [...loggers].map((logger) =>
        Logger.make<unknown, unknown>((entry) =>
          [entry.message].flat().includes("unroutable event") ? undefined : logger.log(entry)
        )
      )
    )
)

const serve = Effect.fnUntraced(function* (
  options: Omit<DevOptions, "port" | "store" | "asksForToken"> & {
    readonly client: BrokerOptions
    readonly open: OpenFiles
  },
  token: DevToken | undefined,
  server: EmbeddedBroker,
  size: StoreSize
) {
  // Only commands that run the engine import it, so that the others respond faster.
  setCollector()
  const { data, quiet, traces, withSample } = options
  const id = `dev-${process.pid}`
  const { metrics, servedAt, started } = yield* startMetrics(options, id)
  const { startWorker } = yield* Effect.promise(() => import("../../../worker/worker.ts"))
  const { offerWorkerFigures } = yield* Effect.promise(
    () => import("../../../worker/worker-service.ts")
  )
  const { json } = yield* petrel
  const { names } = yield* Broker
  const { eventBytes, lost } = yield* initDevStore(size)
  for (const { loss, what } of lost)
    yield* remark(`Warning: ${what} was missing, and was made again: ${loss}`)
  const console = yield* serveDevConsole(options)
  const sample = withSample ? yield* serveSample : undefined
  const { serveDevSources, sourceLines } = yield* Effect.promise(() => import("./sources.ts"))
  const sources = yield* serveDevSources(
    options.sources,
    options.listen.endsWith(":0"),
    options.open
  )
  const samples = sample?.first === true ? sampleIds : new Set<string>()
  const telling = quiet && samples.size === 0 ? undefined : yield* tell(quiet, samples)
  const own = { id, roles: ["router", "deliver"] } as const
  const worker = yield* withoutRepeatedLogs(
    startWorker({
      ...own,
      ...(yield* workerLoad(defaultLoad.maxInFlight, options.open)),
      allowNetworks: loopback,
      allowPorts: "any",
      ...{ stopWithin, traces, metrics }
    })
  )
  started(worker.problems)
  yield* offerWorkerFigures(worker, own, metrics)
  const say = (lines: ReadonlyArray<string>) =>
    json ? Effect.void : Effect.forEach(lines, print, { discard: true })
  const { store } = size
  const text = welcome({
    nats: server.url,
    token,
    data,
    store,
    eventBytes,
    eventRoot: names.eventRoot,
    console,
    sample,
    metrics: servedAt
  })
  if (json)
    yield* print(
      JSON.stringify({
        event: "ready",
        nats: server.url,
        ...(token === undefined ? {} : { tokenFile: resolve(token.file) }),
        data: resolve(data),
        api: console.address,
        apiTokenFile: resolve(console.tokenFile),
        storeBytes: store,
        eventBytes,
        worker: id,
        ...(servedAt === undefined ? {} : { metrics: servedAt }),
        ...(sample === undefined ? {} : { sample: sample.url }),
        ...(sources.length === 0 ? {} : { sources })
      })
    )
  yield* say(text.ready)
  yield* say(sourceLines(sources))
  yield* Effect.timeoutOrElse(Effect.asVoid(worker.delivering), {
    duration: leaseTime,
    orElse: () =>
      Effect.andThen(
        remark(
          "Deliveries have not begun yet: after a worker was killed, that takes up to 10 s.\n"
        ),
        worker.delivering.pipe(Effect.andThen(remark("Deliveries have begun.")), Effect.forkScoped)
      )
  })
  if (sample?.first === true) {
    yield* publishSamples
    yield* (telling?.samplesDelivered ?? Effect.void).pipe(Effect.timeoutOption(sampleTime))
  }
  yield* say(text.next)
  yield* Effect.raceFirst(telling?.ended ?? Effect.never, worker.refused)
})

const isThere = (path: string) =>
  Effect.promise(() =>
    access(path).then(
      () => true,
      () => false
    )
  )

/**
 * The broker is part of this command: when the broker exits, the command exits. Likewise if its
 * files are removed: it goes on in them, acknowledges what it stores, and loses it when it stops.
 */
const untilBrokerEnds = (server: EmbeddedBroker, dataDir: string) => {
  const ended = Effect.flatMap(
    server.exited,
    (code) =>
      new Refused({
        message: `the broker has stopped by itself (exit code ${code}): see ${join(dataDir, "nats-server.log")}, then start again`
      })
  )
  const removed = isThere(join(dataDir, "jetstream")).pipe(
    Effect.delay(storeLookMs),
    Effect.repeat({ while: (isThere) => isThere }),
    Effect.andThen(
      new Refused({
        message: `the broker's files in ${dataDir} were removed while it ran: all that they held is lost. Start again to begin with an empty store`
      })
    )
  )
  return Effect.raceFirst(ended, removed)
}

const run = Effect.fnUntraced(function* (options: DevOptions) {
  const { events, prefix } = yield* petrel
  // Worker, console and gateway share the files of this process.
  const open = { files: openFileLimit(), parts: options.sources.length > 0 ? 3 : 2 }
  yield* lockDataDirectory(options.data)
  const token = options.asksForToken ? yield* readDevToken(options.data) : undefined
  const dataDir = join(options.data, "broker")
  const size = yield* storeSize(dataDir, options.data, options.store)
  if (size.warning !== undefined) yield* remark(`Warning: ${size.warning}`)
  const server = yield* startEmbedded({
    port: options.port,
    dataDir,
    maxStore: size.store,
    token: token?.token,
    onProgress: (line) => process.stderr.write(`${visible(line)}\n`)
  }).pipe(
    Effect.catchTag("BrokerStartError", ({ message }) => {
      const free = options.port === 4300 ? 4301 : 4300
      return new Refused({
        message: message
          .replace(/choose another port$/, `choose another port (--nats-port ${free})`)
          .replace(/choose another data directory$/, "choose another directory with --data")
      })
    })
  )
  const client: BrokerOptions = {
    url: token === undefined ? server.url : withToken(server.url, token.token),
    prefix,
    eventRoot: events,
    clientName: "petrel dev"
  }
  const broker = connectTo(client)
  const brokerEnds = untilBrokerEnds(server, dataDir)
  const services = yield* Effect.raceFirst(Layer.build(broker), brokerEnds)
  return yield* Effect.raceFirst(
    Effect.scoped(serve({ ...options, client, open }, token, server, size)),
    // Before the worker stops: otherwise it would wait for answers from a broker that has exited.
    Effect.onExit(brokerEnds, (exit) => (Exit.hasInterrupts(exit) ? Effect.void : abandon))
  ).pipe(Effect.provideContext(services))
}, Effect.scoped)

const farewell = Effect.gen(function* () {
  const { json } = yield* petrel
  // The terminal shows ^C on the current line.
  const newline = process.stderr.isTTY ? "\n" : ""
  if (!json)
    yield* remark(
      `${newline}Stopped, first the worker, then the broker. Next time it continues from here.`
    )
})

const quietly = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(GlobalFlag.LogLevel, (asked) =>
    Effect.provideService(
      effect,
      References.MinimumLogLevel,
      Option.getOrElse(asked, () => "Warn" as const)
    )
  )

/** Runs a broker and a worker in one process, for trying out Petrel and for development. */
export const dev = Command.make(
  "dev",
  {
    port: Flag.Int("nats-port").pipe(
      Flag.withMetavar("PORT"),
      Flag.withDescription("Where the broker listens; 0 takes a free port"),
      Flag.filter(
        (port) => port >= 0 && port <= 65_535,
        () => "must be a port, 0 to 65535"
      ),
      Flag.withDefault(4222)
    ),
    listen: Flag.String("listen").pipe(
      Flag.withMetavar("HOST:PORT"),
      Flag.withDescription(
        `Where the HTTP API listens, on this machine only (default: ${defaultListen}; a free port with --nats-port 0)`
      ),
      Flag.filter(
        (text) => isLoopback(readListen(text)?.host ?? ""),
        () => `must be an address of this machine and a port, such as ${defaultListen}`
      ),
      maybe
    ),
    data: Flag.String("data").pipe(
      Flag.withMetavar("DIRECTORY"),
      Flag.withDescription("Where everything is kept"),
      Flag.filter(
        (directory) => directory.trim() !== "",
        () => "must be a directory, such as .petrel"
      ),
      Flag.withDefault(".petrel")
    ),
    store: Flag.String("store").pipe(
      Flag.withMetavar("SIZE"),
      Flag.withDescription(
        `How much of the disk it may fill; publishers are refused when half of it is events (default: as at the last start; at the first one half of the free disk, at most ${bytesText(maxStoreBytes)})`
      ),
      Flag.filterMap(
        (text) =>
          Option.filter(Option.fromUndefinedOr(readBytes(text)), (bytes) => bytes >= minStoreBytes),
        (text) =>
          readBytes(text) === undefined
            ? bytesExpected
            : `must be at least ${bytesText(minStoreBytes)}`
      ),
      maybe
    ),
    asksForToken: isSet(
      "token",
      "Require the token in the file token of the data directory; made if there is none"
    ),
    quiet: isSet("quiet", "Do not print what happens to each delivery"),
    withSample: Flag.Boolean("sample").pipe(
      Flag.withDescription("On an empty store, make an endpoint and publish events to watch"),
      Flag.withDefault(true)
    ),
    sources: repeated(
      "source",
      "PROVIDER",
      "Take in webhooks of this provider, with a secret that is printed, such as stripe or github; may be repeated"
    ),
    ...metricsFlags,
    traces: tracesFlag,
    tracesOtlp: tracesOtlpFlag
  },
  Effect.fnUntraced(function* ({ listen, ...options }) {
    if (options.sources.length > 0) {
      const { devSourceProblem } = yield* Effect.promise(() => import("./sources.ts"))
      const problems = options.sources.flatMap((provider) => devSourceProblem(provider) ?? [])
      if (problems.length > 0) return yield* refusal(problems)
    }
    const usual = options.port === 0 ? "127.0.0.1:0" : defaultListen
    return yield* quietly(
      untilStopped(Effect.onInterrupt(run({ ...options, listen: listen ?? usual }), () => farewell))
    )
  })
).pipe(
  Command.withDescription(
    "Run a broker and a worker in one process, with a sample endpoint on first start"
  ),
  Command.withShortDescription("Run everything in one process, to try it")
)
