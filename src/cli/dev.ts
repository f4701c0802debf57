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
import { abandon, Broker } from "../broker/connection.ts"
import type { EmbeddedBroker } from "../broker/embedded.ts"
import { startEmbedded } from "../broker/embedded.ts"
import { init } from "../broker/init.ts"
import { readInstalled } from "../broker/installed.ts"
import { defaultTopology } from "../broker/topology.ts"
import { isSuccess } from "../domain/fact.ts"
import type { StoredFact } from "../history/read.ts"
import { readFacts } from "../history/read.ts"
import { setCollector } from "./collector.ts"
import { lockDataDirectory } from "./data-lock.ts"
import { petrel } from "./frame.ts"
import { reportFact } from "./history.ts"
import { Refused } from "./refused.ts"
import { publishSamples, sampleIds, serveSample } from "./sample.ts"
import { untilStopped } from "./signals.ts"
import { print } from "./stdout.ts"
import { remark } from "./terminal.ts"
import { welcome } from "./welcome.ts"

const loopback = ["127.0.0.0/8", "::1/128"].map(IpNetwork.fromStringUnsafe)

/** How long requests in flight may take at the end, ms: Ctrl-C is answered within 2 s. */
const stopWithin = 1_400
/** How long to look at the sample events before saying what else there is. */
const sampleTime = "20 seconds"
/** Delivering begins sooner than this, unless the leases of a worker that was killed have to end. */
const leaseTime = "2 seconds"

/** Outcomes, and of plans only those that come to nothing: what a person at a terminal wants to see. */
const isNews = ({ fact }: StoredFact): boolean =>
  fact.kind !== "routed" || fact.plan?.endpoints.length === 0

/** Prints what happens from now on; `samplesDelivered` succeeds when the sample events have arrived. */
const tell = Effect.gen(function* () {
  const { json } = yield* petrel
  const since = yield* Clock.currentTimeMillis
  const missing = new Set(sampleIds)
  const delivered = yield* Deferred.make<void>()
  const telling = yield* readFacts({ follow: true, since }).pipe(
    Stream.filter((stored) => json || isNews(stored)),
    Stream.runForEach((stored) =>
      Effect.gen(function* () {
        yield* reportFact(stored)
        if (isSuccess(stored.fact.kind)) missing.delete(stored.fact.event ?? "")
        if (missing.size === 0) yield* Deferred.succeed(delivered, undefined)
      })
    ),
    Effect.forkScoped
  )
  return { ended: Fiber.join(telling), samplesDelivered: Deferred.await(delivered) }
})

/** Bytes. The broker reserves them on disk at once, and a trial should fit on any. */
const deadBytes = 128 * 1024 ** 2

/** Makes what is missing, and leaves what `petrel init` was told otherwise. */
const layout = Effect.gen(function* () {
  yield* init({ ...defaultTopology, deadBytes, ...(yield* readInstalled) })
})

/** The line of the fact says it, on the same terminal. */
const withoutToldTwice = Effect.updateService(
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
  { data, withSample }: { readonly data: string; readonly withSample: boolean },
  server: EmbeddedBroker
) {
  // The engine is loaded by commands that run it only: the others answer sooner.
  setCollector()
  const { startWorker } = yield* Effect.promise(() => import("../delivery/worker.ts"))
  const { json } = yield* petrel
  const { names } = yield* Broker
  yield* layout
  const sample = withSample ? yield* serveSample : undefined
  const telling = yield* tell
  const id = `dev-${process.pid}`
  const worker = yield* withoutToldTwice(
    startWorker({ id, roles: ["router", "deliver"], allowNetworks: loopback, stopWithin })
  )
  const say = (lines: ReadonlyArray<string>) =>
    json ? Effect.void : Effect.forEach(lines, print, { discard: true })
  const text = welcome({ nats: server.url, data, eventRoot: names.eventRoot, sample })
  if (json)
    yield* print(
      JSON.stringify({
        event: "ready",
        nats: server.url,
        data: resolve(data),
        worker: id,
        ...(sample === undefined ? {} : { sample: sample.url })
      })
    )
  yield* say(text.ready)
  yield* Effect.timeoutOrElse(Effect.asVoid(worker.delivering), {
    duration: leaseTime,
    orElse: () =>
      Effect.andThen(
        remark(
          "Another worker has partitions that are to be this one's, or was killed and has them for up to 10 s more.\n"
        ),
        worker.delivering.pipe(Effect.andThen(remark("This one has them now.")), Effect.forkScoped)
      )
  })
  if (sample?.first === true) {
    yield* publishSamples
    yield* telling.samplesDelivered.pipe(Effect.timeoutOption(sampleTime))
  }
  yield* say(text.next)
  yield* Effect.raceFirst(telling.ended, worker.refused)
})

/** The broker is part of this command: its end is the command's. */
const untilBrokerEnds = (server: EmbeddedBroker, log: string) =>
  Effect.flatMap(
    server.exited,
    (code) =>
      new Refused({
        message: `the broker has stopped by itself (exit code ${code}): see ${log}, then start again`
      })
  )

const run = Effect.fnUntraced(function* (options: {
  readonly data: string
  readonly port: number
  readonly withSample: boolean
}) {
  const { events, prefix } = yield* petrel
  yield* lockDataDirectory(options.data)
  const dataDir = join(options.data, "broker")
  const server = yield* startEmbedded({
    port: options.port,
    dataDir,
    onProgress: (line) => process.stderr.write(`${line}\n`)
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
  const broker = Broker.layer({
    url: server.url,
    prefix,
    eventRoot: events,
    clientName: "petrel dev"
  })
  const brokerEnds = untilBrokerEnds(server, join(dataDir, "nats-server.log"))
  const services = yield* Effect.raceFirst(Layer.build(broker), brokerEnds)
  return yield* Effect.raceFirst(
    Effect.scoped(serve(options, server)),
    // Before the worker stops: it would wait for answers of a broker that is no more.
    Effect.onExit(brokerEnds, (exit) => (Exit.hasInterrupts(exit) ? Effect.void : abandon))
  ).pipe(Effect.provideContext(services))
}, Effect.scoped)

const farewell = Effect.gen(function* () {
  const { json } = yield* petrel
  // After the ^C that a terminal shows.
  const newline = process.stderr.isTTY ? "\n" : ""
  if (!json)
    yield* remark(
      `${newline}Stopped, first the worker, then the broker. Next time it goes on from here.`
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

/** A broker and a worker in one process, to try Petrel and to develop against it. */
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
    data: Flag.String("data").pipe(
      Flag.withMetavar("DIRECTORY"),
      Flag.withDescription("Where everything is kept"),
      Flag.filter(
        (directory) => directory.trim() !== "",
        () => "must be a directory, such as .petrel"
      ),
      Flag.withDefault(".petrel")
    ),
    withSample: Flag.Boolean("sample").pipe(
      Flag.withDescription("On an empty store, make an endpoint and publish events to watch"),
      Flag.withDefault(true)
    )
  },
  (options) => quietly(untilStopped(Effect.onInterrupt(run(options), () => farewell)))
).pipe(
  Command.withDescription(
    "Run a broker and a worker in one process, with a sample endpoint on first start"
  ),
  Command.withShortDescription("Run everything in one process, to try it")
)
