import { randomBytes } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import type { Msg, NatsConnection } from "@nats-io/nats-core"
import { TimeoutError } from "@nats-io/nats-core"
import { Effect, Layer, type Scope, Stream } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients, registerClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { scanQueue } from "../../src/broker/scan.ts"
import { markRestoring } from "../../src/broker/snapshot.ts"
import { readSurvey } from "../../src/delivery/introspection/survey.ts"
import { countWaiting } from "../../src/delivery/introspection/waiting.ts"
import { originStreams } from "../../src/domain/backlog-message.ts"
import type { IncomingEvent } from "../../src/domain/intake.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { Facts } from "../../src/history/facts.ts"
import { storeIncoming } from "../../src/intake/store-incoming.ts"
import { backUp } from "../../src/operations/backup/backup.ts"
import { snapshotFile } from "../../src/operations/backup/backup-files.ts"
import type { BackupStep } from "../../src/operations/backup/copies.ts"
import { manifestText, readManifest } from "../../src/operations/backup/manifest.ts"
import { type RestoreStep, restore } from "../../src/operations/backup/restore.ts"
import { cameThroughBacklog, cameThroughQueue } from "../../src/operations/backup/tail.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { addJob, showJob } from "../../src/operations/jobs/manage-jobs.ts"
import { conditionsOf } from "../../src/operations/status/status-conditions.ts"
import { run } from "../cli/in-process.ts"
import { start } from "../cli/running.ts"
import { quiet } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  lateRetry,
  publish,
  publishMany,
  quickRetry,
  testTopology,
  worker,
  workersApart
} from "../kit/engine.ts"
import { change } from "../kit/live-endpoints.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { canMount, startServer } from "../kit/nats-server.ts"
import type { Answer, Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { steadyPublisher } from "../kit/steady-publisher.ts"
import { replayTo } from "./replaying.ts"

vi.setConfig({ testTimeout: 120_000 })

const { scenario } = onServer()

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-backup-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** @param config lines of the broker's configuration. */
const serverWith = (config: string) =>
  Effect.acquireRelease(
    Effect.promise(() => startServer({ config })),
    (server) => Effect.promise(() => server.stop())
  )

const otherServer = serverWith("")

const nothing = () => undefined

const backedUp = (
  directory: string,
  tell: (step: BackupStep) => Effect.Effect<void> = () => Effect.void
) => backUp({ directory, version: "0.0.0", tell, copied: nothing })

const restored = (directory: string) => restore({ directory, tell: nothing })

/** Restores over a connection whose requests something is done with first. */
const restoredOver = (
  directory: string,
  ask: (
    request: NatsConnection["request"],
    ...given: Parameters<NatsConnection["request"]>
  ) => Promise<Msg>,
  changes: Partial<Broker["Service"]> = {}
) =>
  Effect.gen(function* () {
    const broker = Broker.of({ ...(yield* Broker), ...changes })
    const clients = yield* natsClients
    const connection = new Proxy(clients.connection, {
      get: (target, name) => {
        const value = Reflect.get(target, name)
        if (typeof value !== "function") return value
        const bound = value.bind(target)
        return name === "request"
          ? (...given: Parameters<NatsConnection["request"]>) => ask(bound, ...given)
          : bound
      }
    })
    registerClients(broker, { ...clients, connection })
    return yield* Effect.provideService(restored(directory), Broker, broker)
  })

const streams = Effect.flatMap(Broker, ({ streamNames }) => streamNames("list the streams"))

/** The flags by which a command finds an installation, on its own broker or on another one. */
const flagsOf = (place: Installation, { url }: Pick<TestServer, "url"> = place) => [
  ...["--nats", url, "--prefix", place.prefix, "--events", place.eventRoot]
]

/** Does something at another broker, under the names of the same installation. */
const at = <A, E>(
  place: Installation,
  server: Pick<TestServer, "url">,
  effect: Effect.Effect<A, E, Broker | Facts | Scope.Scope>
) =>
  Effect.provide(
    Effect.scoped(effect),
    Facts.layer.pipe(Layer.provideMerge(connectTo({ ...place, url: server.url })))
  )

const idOf = ({ headers }: Received) => `${headers["webhook-id"]}`
const numberOf = (request: Received) => Number(idOf(request).split("-").at(-1))

const problems = Effect.map(audit({}), ({ cautions, judgement }) => ({
  // As texts, since a failure shows no more of an object than its first field.
  list: judgement.problems.list.map((problem) => JSON.stringify(problem)),
  tally: judgement.tally,
  cautions: cautions.filter(({ kind }) => kind === "restored")
}))

/** Waits until the first partition's backlog has no message any more. */
const backlogRemoved = eventually(
  Effect.flatMap(Broker, ({ names, streamInfo }) => streamInfo("look", names.backlog(0))),
  ({ state }) => state.messages === 0
)

describe("a backup", () => {
  scenario(
    "that is made under load is restored elsewhere, and each event of it is delivered",
    (place) =>
      Effect.gen(function* () {
        let isDown = true
        const hook = yield* receiver({
          answer: (request) => {
            if (request.path === "/down" && isDown) return { status: 503 }
            if (numberOf(request) % 11 === 0) return { status: 400 }
            const isFirst = request.headers["petrel-attempt"] === "1"
            return { status: isFirst && numberOf(request) % 3 === 0 ? 503 : 200 }
          }
        })
        const ids = ["a", "b", "down"]
        for (const id of ids)
          yield* endpoint({
            id,
            url: `${hook.url}/${id}`,
            retry: quickRetry({
              backoff: { kind: "fixed", delay: "200 millis" },
              maxAttempts: 1_000,
              window: "10 minutes"
            }),
            ...(id === "down"
              ? { circuit: { failures: 3, coolDown: "300 millis", maxCoolDown: "300 millis" } }
              : {})
          })
        const directory = yield* folder
        const copied = yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker({ maxWaiting: 20 })
            const publisher = yield* steadyPublisher("invoice.paid", 6)
            yield* hook.received(300)
            const manifest = yield* backedUp(join(directory, "copy"))
            const during = publisher.count()
            yield* hook.received(hook.requests.length + 100)
            yield* publisher.stop
            return { manifest, during }
          })
        )
        const { manifest } = copied
        const sentBefore = hook.requests.length
        assert.isAbove(manifest.events.seq, 50)
        assert.isAtMost(manifest.events.seq, copied.during)
        assert.isAtLeast(manifest.events.seq, manifest.routedUpTo)

        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            const dry = yield* restore({
              directory: join(directory, "copy"),
              dryRun: true,
              tell: nothing
            })
            assert.isAbove(dry.messages, 0)
            yield* restored(join(directory, "copy"))
            yield* init({ ...testTopology })
            isDown = false
            yield* worker()
            yield* quiet
            const { cautions, list, tally } = yield* problems
            assert.deepStrictEqual(list, [])
            assert.strictEqual(tally.begun, manifest.events.seq * ids.length)
            assert.strictEqual(tally.pending + tally.missing, 0)
            assert.lengthOf(cautions, 1)
            assert.include(cautions[0]?.says, new Date(manifest.history.at).toISOString())
            const again = hook.requests
              .slice(sentBefore)
              .filter((request) => numberOf(request) <= manifest.routedUpTo)
            // What had ended before the backup was begun is not sent again.
            const endedBefore = hook.requests
              .slice(0, sentBefore)
              .filter((request) => request.path !== "/down" && numberOf(request) < 25)
              .map((request) => `${idOf(request)} ${request.path}`)
            for (const request of again)
              assert.notInclude(endedBefore, `${idOf(request)} ${request.path}`)
          })
        )
        const reached = new Set(
          hook.requests.map((request) => `${numberOf(request)} ${request.path}`)
        )
        for (let number = 1; number <= manifest.events.seq; number++)
          for (const id of ids) assert.isTrue(reached.has(`${number} /${id}`), `${number} to ${id}`)
      })
  )

  scenario(
    "has what moves from a backlog to its queue while it is copied",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 503 } })
        const target = { tenant: "acme", endpoint: "hook" }
        yield* endpoint({
          url: hook.url,
          retry: quickRetry({ backoff: { kind: "fixed", delay: "15 seconds" }, window: "1 hour" })
        })
        const directory = yield* folder
        const facts = yield* history
        const here = Layer.succeed(Broker, yield* Broker)
        const known = Layer.succeed(Facts, yield* Facts)
        const events = 20
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* pauseEndpoint(target, undefined, "a test")
            yield* worker({ maxWaiting: 0 })
            yield* publishMany(events)
            yield* facts.planned(events)
            yield* eventually(countWaiting("acme", "hook"), ({ backlog }) => backlog === events)
            yield* backedUp(join(directory, "copy"), (step) =>
              // Its queue has been copied, and is empty.
              step.event === "copying" && step.stream.endsWith("BACKLOG_0")
                ? Effect.gen(function* () {
                    yield* resumeEndpoint(target, "a test")
                    yield* facts.count("attempt-failed", events)
                    yield* backlogRemoved
                  }).pipe(Effect.provide(Layer.merge(here, known)), Effect.orDie)
                : Effect.void
            )
          })
        )
        // On a slow machine some of them were due again before the first worker stopped.
        const failed = hook.requests.length
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            const { mended } = yield* restored(join(directory, "copy"))
            assert.strictEqual(mended?.moved, events)
            const before = yield* problems
            assert.deepStrictEqual(before.list, [])
            assert.strictEqual(before.tally.pending, events)
            hook.answer({ status: 200 })
            yield* worker()
            yield* quiet
            const after = yield* problems
            assert.deepStrictEqual(after.list, [])
            assert.strictEqual(after.tally.delivered, events)
          })
        )
        assert.strictEqual(hook.requests.length, failed + events)
      }),
    { partitions: 1 }
  )

  scenario(
    "has what comes into a queue after its copy, and fails before the history is copied",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 503 } })
        const retry = quickRetry({
          backoff: { kind: "fixed", delay: "15 seconds" },
          window: "1 hour"
        })
        yield* endpoint({ url: hook.url, retry })
        const directory = yield* folder
        const facts = yield* history
        const here = Layer.succeed(Broker, yield* Broker)
        const known = Layer.succeed(Facts, yield* Facts)
        const events = 20
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* workersApart()
            yield* backedUp(join(directory, "copy"), (step) =>
              // Queue and backlog have been copied, and are empty.
              step.event === "copying" && step.stream.endsWith("CONFIGURATION")
                ? Effect.gen(function* () {
                    yield* publishMany(events)
                    yield* facts.count("attempt-failed", events)
                    yield* replayTo("hook")
                    yield* facts.count("attempt-failed", 2 * events)
                  }).pipe(Effect.provide(Layer.merge(here, known)), Effect.orDie)
                : Effect.void
            )
          })
        )
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            const { mended } = yield* restored(join(directory, "copy"))
            hook.answer({ status: 200 })
            yield* worker()
            yield* quiet
            const { list, tally } = yield* problems
            assert.deepStrictEqual(list, [])
            assert.strictEqual(tally.delivered, 2 * events)
            assert.strictEqual(mended?.queuedAgain, 2 * events)
          })
        )
        const last = hook.requests.slice(2 * events)
        assert.lengthOf(last, 2 * events)
        for (const { headers } of last) assert.strictEqual(headers["petrel-attempt"], "2")
      }),
    { partitions: 1 }
  )

  scenario(
    "has what is attempted from a backlog after its copy, and left it before the history is copied",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 503 } })
        const target = { tenant: "acme", endpoint: "hook" }
        const retry = quickRetry({
          backoff: { kind: "fixed", delay: "25 seconds" },
          window: "1 hour"
        })
        yield* endpoint({ url: hook.url, retry })
        const directory = yield* folder
        const facts = yield* history
        const here = Layer.succeed(Broker, yield* Broker)
        const known = Layer.succeed(Facts, yield* Facts)
        const events = 20
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* pauseEndpoint(target, undefined, "a test")
            const first = yield* worker({ maxWaiting: 0 })
            yield* publishMany(events)
            yield* facts.planned(events)
            yield* eventually(countWaiting("acme", "hook"), ({ backlog }) => backlog === events)
            yield* backedUp(join(directory, "copy"), (step) =>
              // Queue and backlog have been copied.
              step.event === "stream" && step.stream.name.endsWith("BACKLOG_0")
                ? Effect.gen(function* () {
                    yield* resumeEndpoint(target, "a test")
                    yield* facts.count("attempt-failed", events)
                    yield* backlogRemoved
                    // On a slow machine their retries are due before the rest is copied.
                    yield* first.stop
                  }).pipe(Effect.provide(Layer.merge(here, known)), Effect.orDie)
                : Effect.void
            )
          })
        )
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            const { mended } = yield* restored(join(directory, "copy"))
            const before = yield* problems
            assert.deepStrictEqual(before.list, [])
            assert.strictEqual(before.tally.pending, events)
            hook.answer({ status: 200 })
            yield* worker()
            yield* quiet
            const after = yield* problems
            assert.deepStrictEqual(after.list, [])
            assert.strictEqual(after.tally.delivered, events)
            assert.strictEqual(mended?.queuedAgain, events)
          })
        )
        const last = hook.requests.slice(events)
        assert.lengthOf(last, events)
        for (const { headers } of last) assert.strictEqual(headers["petrel-attempt"], "2")
      }),
    { partitions: 1 }
  )

  scenario(
    "has what is written again at the end of a backlog while that is copied",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        const target = { tenant: "acme", endpoint: "hook" }
        yield* endpoint({ url: hook.url, retry: quickRetry({ window: "1 hour" }) })
        const directory = yield* folder
        const { names, publish: store, streamInfo } = yield* Broker
        const facts = yield* history
        const here = Layer.succeed(Broker, yield* Broker)
        const known = Layer.succeed(Facts, yield* Facts)
        const filler = names.subjects.backlog(0, "acme", "filler")
        const numberIn = (subject: string) =>
          Effect.map(
            streamInfo("look", names.backlog(0), { subjects_filter: subject }),
            ({ state }) => state.subjects?.[subject] ?? 0
          )
        const messages = numberIn(names.subjects.backlog(0, "acme", "hook"))
        let published = 0
        /** Publishes events that come one by one, until their messages are written again as one. */
        const untilFolded = Effect.fnUntraced(function* (most: number) {
          for (let last = yield* messages, now = last; now >= last && published < most; ) {
            yield* publish("invoice.paid", String(++published))
            yield* eventually(countWaiting("acme", "hook"), ({ backlog }) => backlog === published)
            yield* Effect.sleep("50 millis")
            last = now
            now = yield* messages
          }
        })
        let stream = ""
        let isFolded = false
        yield* Effect.scoped(
          Effect.gen(function* () {
            // More than the broker sends before it waits: it has not come to the end of the backlog.
            for (let index = 0; index < 96; index++)
              yield* store(filler, randomBytes(250_000), [["Nats-Msg-Id", `${index}`]])
            yield* pauseEndpoint(target, undefined, "a test")
            yield* worker()
            yield* untilFolded(3)
            yield* facts.planned(3)
            const directly = untilFolded(40).pipe(
              Effect.provide(Layer.merge(here, known)),
              Effect.orDie
            )
            yield* backUp({
              directory: join(directory, "copy"),
              version: "0.0.0",
              tell: (step) =>
                Effect.sync(() => {
                  if (step.event === "copying") stream = step.stream
                }),
              copied: async () => {
                if (isFolded || !stream.endsWith("BACKLOG_0")) return
                isFolded = true
                await Effect.runPromise(directly)
              }
            })
          })
        )
        assert.isTrue(isFolded)
        assert.isBelow(yield* messages, published)
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            const { mended } = yield* restored(join(directory, "copy"))
            yield* Effect.flatMap(Broker, (broker) =>
              broker.purge("forget the filler", names.backlog(0), { filter: filler, seq: 97 })
            )
            const before = yield* problems
            assert.deepStrictEqual(before.list, [])
            assert.strictEqual(before.tally.pending, published)
            assert.strictEqual(mended?.moved, published)
            const { backlog } = yield* countWaiting("acme", "hook")
            assert.strictEqual(backlog, published)
            yield* resumeEndpoint(target, "a test")
            yield* worker()
            yield* quiet
            const after = yield* problems
            assert.deepStrictEqual(after.list, [])
            assert.strictEqual(after.tally.delivered, published)
          })
        )
        assert.strictEqual(hook.requests.length, published)
      }),
    { partitions: 1 }
  )

  scenario(
    "is made while deliveries move from a queue to a backlog all the time",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        const target = { tenant: "acme", endpoint: "hook" }
        yield* endpoint({ url: hook.url, retry: quickRetry({ window: "1 hour" }) })
        const directory = yield* folder
        const here = Layer.succeed(Broker, yield* Broker)
        const known = Layer.succeed(Facts, yield* Facts)
        let published = 0
        let stream = ""
        const spilled = Effect.gen(function* () {
          yield* Effect.repeat(publish("invoice.paid"), { times: 4 })
          published += 5
          yield* eventually(countWaiting("acme", "hook"), ({ backlog }) => backlog === published)
        }).pipe(Effect.provide(Layer.merge(here, known)), Effect.orDie)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* pauseEndpoint(target, undefined, "a test")
            yield* workersApart()
            yield* spilled
            yield* backUp({
              directory: join(directory, "copy"),
              version: "0.0.0",
              tell: (step) =>
                Effect.sync(() => {
                  if (step.event === "copying") stream = step.stream
                }),
              // The copy of the backlog has begun.
              copied: async () => {
                if (stream.endsWith("BACKLOG_0")) await Effect.runPromise(spilled)
              }
            })
          })
        )
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            yield* restored(join(directory, "copy"))
            yield* resumeEndpoint(target, "a test")
            yield* worker()
            yield* quiet
            const { list, tally } = yield* problems
            assert.deepStrictEqual(list, [])
            assert.strictEqual(tally.delivered, published)
          })
        )
        assert.strictEqual(hook.requests.length, published)
      }),
    { partitions: 1 }
  )

  scenario(
    "has what waits for a retry when its queue is copied, and moves to the backlog after that",
    (place) =>
      Effect.gen(function* () {
        const { names, streamInfo } = yield* Broker
        const hook = yield* receiver({ answer: { status: 503 } })
        const target = { tenant: "acme", endpoint: "hook" }
        const retry = quickRetry({ backoff: { kind: "fixed", delay: "4 seconds" } })
        yield* endpoint({ url: hook.url, retry })
        const directory = yield* folder
        const facts = yield* history
        const here = Layer.succeed(Broker, yield* Broker)
        const known = Layer.succeed(Facts, yield* Facts)
        const events = 20
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* workersApart()
            yield* publishMany(events)
            yield* facts.count("attempt-failed", events)
            yield* backedUp(join(directory, "copy"), (step) =>
              step.event === "stream" && step.stream.name.endsWith("BACKLOG_0")
                ? Effect.gen(function* () {
                    yield* pauseEndpoint(target, undefined, "a test")
                    yield* eventually(
                      countWaiting("acme", "hook"),
                      ({ backlog }) => backlog === events
                    )
                    yield* eventually(
                      streamInfo("look", names.deliveries(0)),
                      ({ state }) => state.messages === 0
                    )
                  }).pipe(Effect.provide(Layer.merge(here, known)), Effect.orDie)
                : Effect.void
            )
          })
        )
        assert.lengthOf(hook.requests, events)
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            yield* restored(join(directory, "copy"))
            hook.answer({ status: 200 })
            yield* resumeEndpoint(target, "a test")
            yield* worker()
            yield* quiet
            const { list, tally } = yield* problems
            assert.deepStrictEqual(list, [])
            assert.strictEqual(tally.delivered, events)
          })
        )
        const last = hook.requests.slice(events)
        assert.lengthOf(last, events)
        for (const { headers } of last) assert.strictEqual(headers["petrel-attempt"], "2")
      }),
    { partitions: 1 }
  )

  scenario(
    "has what is attempted when its queue is copied, and fails before the history is copied",
    (place) =>
      Effect.gen(function* () {
        let fail: (answer: Answer) => void = nothing
        const failed = new Promise<Answer>((resolve) => {
          fail = resolve
        })
        const hook = yield* receiver({ answer: () => failed })
        const retry = quickRetry({
          backoff: { kind: "fixed", delay: "15 seconds" },
          window: "1 hour"
        })
        const events = 10
        yield* endpoint({ url: hook.url, retry, maxInFlight: events })
        const directory = yield* folder
        const facts = yield* history
        const { names, streamInfo } = yield* Broker
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* workersApart({ maxWaiting: 0 })
            yield* publishMany(events)
            yield* hook.received(events)
            yield* backedUp(join(directory, "copy"), (step) =>
              step.event === "stream" && step.stream.name.endsWith("BACKLOG_0")
                ? Effect.gen(function* () {
                    fail({ status: 503 })
                    yield* facts.count("attempt-failed", events)
                    // The messages that were attempted are gone, and their schedules are there.
                    yield* eventually(
                      streamInfo("look", names.deliveries(0)),
                      ({ state }) => state.messages === events && state.first_seq > events
                    )
                  }).pipe(Effect.orDie)
                : Effect.void
            )
          })
        )
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            const { mended } = yield* restored(join(directory, "copy"))
            assert.strictEqual(mended?.queuedAgain, events)
            assert.deepStrictEqual((yield* problems).list, [])
            hook.answer({ status: 200 })
            yield* worker()
            yield* quiet
            const { list, tally } = yield* problems
            assert.deepStrictEqual(list, [])
            assert.strictEqual(tally.delivered, events)
          })
        )
        const last = hook.requests.slice(events)
        assert.lengthOf(last, events)
        for (const { headers } of last) assert.strictEqual(headers["petrel-attempt"], "2")
      }),
    { partitions: 1 }
  )

  scenario(
    "finds deliveries that went to and fro between its copies, also those in a message with others",
    () =>
      Effect.gen(function* () {
        const { names, streamInfo } = yield* Broker
        const hook = yield* receiver({ answer: { status: 503 } })
        const retry = quickRetry({
          backoff: { kind: "fixed", delay: "15 seconds" },
          window: "1 hour"
        })
        yield* endpoint({ url: hook.url, retry })
        const facts = yield* history
        const router = yield* worker({ id: "router", roles: ["router"] })
        yield* publishMany(20)
        yield* facts.planned(20)
        yield* router.stop
        yield* pauseEndpoint({ tenant: "acme", endpoint: "hook" }, undefined, "a test")
        yield* worker({ maxWaiting: 0 })
        yield* eventually(backlogged, (waiting) => waiting === 20)

        const index = partitionOf("acme", "hook", 2)
        const [queue, backlog] = [names.deliveries(index), names.backlog(index)]
        const last = Effect.fnUntraced(function* (stream: string) {
          const { state } = yield* streamInfo("look", stream)
          const { last_seq: after } = state
          return { stream, after, upTo: after, read: new Set<number>() }
        })
        const messages = yield* Stream.runCollect(scanQueue(backlog, ">"))
        // Of what is in a message with others, no header of its own tells where it came from.
        const shared = messages.find(({ header }) => !header.get("petrel-entries").startsWith("1 "))
        assert.strictEqual(shared?.header.get("petrel-origin"), "")
        const streams = originStreams(names, index)
        const none = { stream: backlog, upTo: 0, after: 0, read: new Set<number>() }
        const copied = (upTo: number, ...read: ReadonlyArray<number>) => ({
          ...{ stream: queue, upTo, read: new Set(read) }
        })
        assert.isTrue(yield* cameThroughQueue(none, copied(0), streams))
        assert.isTrue(yield* cameThroughQueue(none, copied(19), streams))
        assert.isFalse(yield* cameThroughQueue(none, copied(19, 20), streams))
        assert.isFalse(yield* cameThroughQueue(none, yield* last(queue), streams))
        assert.isFalse(yield* cameThroughQueue(yield* last(backlog), copied(0), streams))

        const before = yield* last(queue)
        yield* resumeEndpoint({ tenant: "acme", endpoint: "hook" }, "a test")
        yield* facts.count("attempt-failed", 20)
        yield* eventually(backlogged, (waiting) => waiting === 0)
        assert.isTrue(yield* cameThroughBacklog(before, none))
        const { upTo } = yield* last(backlog)
        const read = new Set(Array.from({ length: upTo }, (_, index) => index + 1))
        assert.isFalse(yield* cameThroughBacklog(before, { ...none, read }))
        assert.isFalse(yield* cameThroughBacklog(yield* last(queue), none))
        assert.isFalse(yield* cameThroughBacklog(before, yield* last(backlog)))
      })
  )

  scenario(
    "has each job as it was before the history was copied, so that nothing of it is left out",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url, retry: lateRetry })
        const directory = yield* folder
        const facts = yield* history
        const here = Layer.mergeAll(
          Layer.succeed(Broker, yield* Broker),
          Layer.succeed(Facts, yield* Facts)
        )
        const events = 20
        const isDone = (id: string) =>
          eventually(
            showJob(id, { kind: "replay", tenant: undefined }),
            ({ state }) => state === "done"
          )
        const replay = { to: { tenant: "acme", id: "hook" }, types: [">"] as const }
        const job = yield* Effect.scoped(
          Effect.gen(function* () {
            yield* worker()
            yield* publishMany(events)
            yield* facts.count("delivered", events)
            hook.answer({ status: 503 })
            const { id } = yield* addJob(
              { kind: "replay", replay: { ...replay, until: Date.now() } },
              "acme",
              "ana"
            )
            yield* backedUp(join(directory, "copy"), (step) =>
              // The history has been copied, and has nothing of the replay.
              step.event === "copying" && step.stream.endsWith("EVENTS")
                ? Effect.gen(function* () {
                    yield* runJobs("console")
                    yield* isDone(id)
                  }).pipe(Effect.scoped, Effect.provide(here), Effect.orDie)
                : Effect.void
            )
            return id
          })
        )
        const failed = hook.requests.length
        hook.answer({ status: 200 })
        const other = yield* otherServer
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            yield* restored(join(directory, "copy"))
            yield* worker()
            yield* runJobs("other console")
            const { result } = yield* isDone(job)
            assert.strictEqual(result?.replayed, events)
            yield* quiet
            const { list, tally } = yield* problems
            assert.deepStrictEqual(list, [])
            assert.strictEqual(tally.delivered, 2 * events)
          })
        )
        assert.strictEqual(hook.requests.length, failed + events)
      })
  )

  scenario("copies endpoints again that are changed meanwhile", (place) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "changed", url: "http://127.0.0.1:9/before" })
      const directory = yield* folder
      const context = Layer.merge(
        Layer.succeed(Broker, yield* Broker),
        Layer.succeed(Facts, yield* Facts)
      )
      let copies = 0
      let stream = ""
      yield* backUp({
        directory: join(directory, "copy"),
        version: "0.0.0",
        tell: (step) =>
          Effect.sync(() => {
            if (step.event !== "copying") return
            stream = step.stream
            if (stream.endsWith("_endpoints")) copies++
          }),
        // The copy has begun, and lacks what is stored from now on.
        copied: async () => {
          if (!stream.endsWith("_endpoints") || copies > 1) return
          const changed = change("changed", { url: "http://127.0.0.1:9/after" })
          await Effect.runPromise(Effect.provide(changed, context))
        }
      })
      assert.strictEqual(copies, 2)
      const other = yield* otherServer
      yield* at(
        place,
        other,
        Effect.gen(function* () {
          yield* restored(join(directory, "copy"))
          const { list } = yield* problems
          assert.deepStrictEqual(list, [])
        })
      )
      const listed = yield* run("endpoint", "list", ...flagsOf(place, other))
      assert.include(listed.out.join("\n"), "http://127.0.0.1:9/after")
    })
  )

  scenario("is for nobody else to read, and says so", (place) =>
    Effect.gen(function* () {
      yield* endpoint()
      const directory = join(yield* folder, "copy")
      const { code, out } = yield* run("backup", directory, ...flagsOf(place))
      assert.strictEqual(code, 0)
      assert.include(out.join("\n"), "secrets of all endpoints")
      assert.strictEqual(statSync(directory).mode & 0o777, 0o700)
      const files = readdirSync(directory)
      assert.include(files, "manifest.json")
      for (const file of files)
        assert.strictEqual(statSync(join(directory, file)).mode & 0o777, 0o600, file)
      const again = yield* run("backup", directory, ...flagsOf(place))
      assert.strictEqual(again.code, 1)
      assert.include(again.err.join("\n"), "there is a backup in")
    })
  )

  // Nothing can be written to /dev/full, as to a disk that is full.
  scenario("that fails leaves nothing, and is made in the same folder once there is space", () =>
    Effect.gen(function* () {
      yield* publishMany(50)
      const { names } = yield* Broker
      const directory = join(yield* folder, "copy")
      const history = join(directory, snapshotFile(names.history))
      const { message } = yield* Effect.flip(
        backedUp(directory, (step) =>
          Effect.sync(() => {
            if (step.event !== "copying" || step.stream !== names.history) return
            assert.include(readdirSync(directory), snapshotFile(names.deliveries(0)))
            symlinkSync("/dev/full", history)
          })
        )
      )
      assert.include(message, "its disk is full")
      assert.isFalse(existsSync(directory))

      const missing = yield* Effect.flip(restored(directory))
      assert.include(missing.message, "there is no folder")
      mkdirSync(directory)
      const empty = yield* Effect.flip(restored(directory))
      assert.include(empty.message, "there is no backup in")

      yield* backedUp(directory)
      assert.include(readdirSync(directory), "manifest.json")
    })
  )

  scenario("that is killed is none, and another one can be made", (place) =>
    Effect.gen(function* () {
      yield* publishMany(3_000, "invoice.paid", 4_000)
      const directory = yield* folder
      const broken = join(directory, "broken")
      const process = yield* start("backup", broken, ...flagsOf(place))
      yield* eventually(
        Effect.sync(() => {
          try {
            return readdirSync(broken).length
          } catch {
            return 0
          }
        }),
        (files) => files > 2
      )
      yield* process.signal("SIGKILL")
      assert.strictEqual(yield* process.ended, 128)
      assert.notInclude(readdirSync(broken), "manifest.json")
      const other = yield* otherServer
      const refused = yield* run("restore", broken, ...flagsOf(place, other))
      assert.strictEqual(refused.code, 1)
      assert.include(refused.err.join("\n"), "was interrupted before it was complete")
      const again = yield* run("backup", broken, ...flagsOf(place))
      assert.strictEqual(again.code, 1)
      assert.include(again.err.join("\n"), "is not empty")
      yield* backedUp(join(directory, "whole"))
      const whole = yield* run(
        "restore",
        join(directory, "whole"),
        "--dry-run",
        ...flagsOf(place, other)
      )
      assert.strictEqual(whole.code, 0)
      assert.include(whole.out.join("\n"), "is intact")
    })
  )
})

describe("a restore", () => {
  scenario("refuses what is damaged or lacks a file, and makes nothing of it", (place) =>
    Effect.gen(function* () {
      yield* endpoint()
      yield* publishMany(50)
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const other = yield* otherServer
      const refusal = Effect.gen(function* () {
        const { code, err } = yield* run("restore", directory, ...flagsOf(place, other))
        assert.strictEqual(code, 1)
        assert.deepStrictEqual(yield* at(place, other, streams), [])
        return err.join("\n")
      })
      /** Restores with a file changed, then puts it back. */
      const changed = (name: string, edit: (bytes: Buffer) => Buffer) => {
        const path = join(directory, name)
        const was = readFileSync(path)
        return Effect.suspend(() => {
          writeFileSync(path, edit(Buffer.from(was)))
          return refusal
        }).pipe(Effect.ensuring(Effect.sync(() => writeFileSync(path, was))))
      }
      const snapshot = `${place.prefix}EVENTS.snapshot`
      const flipped = (bytes: Buffer) => {
        bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
        return bytes
      }
      assert.include(yield* changed(snapshot, flipped), `${snapshot} is not as it was written`)
      assert.include(yield* changed(snapshot, (bytes) => bytes.subarray(1)), `${snapshot} has `)
      assert.include(
        yield* changed("manifest.json", (bytes) =>
          Buffer.from(bytes.toString().replace('"partitions": 2', '"partitions": 1'))
        ),
        "manifest.json of this backup is damaged"
      )
      assert.include(
        yield* changed("manifest.json", (bytes) => bytes.subarray(0, bytes.length / 2)),
        "manifest.json of this backup is damaged"
      )
      rmSync(join(directory, snapshot))
      assert.match(
        yield* refusal,
        new RegExp(`cannot read ${snapshot}: there is no such file.*incomplete without it`)
      )
      const dry = yield* run("restore", directory, "--dry-run", ...flagsOf(place))
      assert.include(dry.err.join("\n"), `cannot read ${snapshot}`)
    })
  )

  scenario("copies nothing again of what came in, and goes on behind it", (place) =>
    Effect.gen(function* () {
      const comesIn = (number: number) =>
        storeIncoming({
          ...{ tenant: "acme", source: "stripe", id: `evt_${number}`, type: "invoice.paid" },
          ...{ body: Buffer.from(`{"number":${number}}`), contentType: "application/json" }
        } satisfies IncomingEvent)
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const directory = join(yield* folder, "copy")
      const facts = yield* history
      const came = 30
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* worker()
          for (let number = 1; number <= came; number++) yield* comesIn(number)
          // The end of the event stream is of another origin.
          yield* publishMany(3)
          yield* facts.count("delivered", came + 3)
          yield* backedUp(directory)
        })
      )
      const other = yield* otherServer
      const states = Effect.gen(function* () {
        const { names, streamInfo } = yield* Broker
        const { state: events } = yield* streamInfo("look", names.events)
        const { config, state } = yield* streamInfo("look", names.configuration)
        return { events: events.messages, configurations: state.messages, from: config.sources }
      })
      const before = yield* states
      yield* at(
        place,
        other,
        Effect.gen(function* () {
          yield* restored(directory)
          const changes = yield* init({ ...testTopology })
          assert.deepStrictEqual(
            changes.flatMap(({ change, what }) => (change === "unchanged" ? [] : [what])),
            []
          )
          yield* worker()
          for (let number = came + 1; number <= came + 5; number++) yield* comesIn(number)
          assert.strictEqual((yield* comesIn(1)).as, "repeated")
          yield* eventually(states, ({ events }) => events >= before.events + 5)
          yield* quiet
          const after = yield* states
          assert.strictEqual(after.events, before.events + 5)
          assert.strictEqual(after.configurations, before.configurations)
          assert.strictEqual(after.from?.length, before.from?.length)
          const { list, tally } = yield* problems
          assert.deepStrictEqual(list, [])
          assert.strictEqual(tally.delivered, came + 3 + 5)
        })
      )
      assert.strictEqual(hook.requests.length, came + 3 + 5)
      assert.strictEqual(new Set(hook.requests.map(idOf)).size, came + 3 + 5)
    })
  )

  scenario("takes a copy that has more than the broker said when it began", (place) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      yield* publishMany(5)
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const file = join(directory, "manifest.json")
      const manifest = yield* readManifest(readFileSync(file, "utf8"))
      // As where two events were stored between the broker's answer and its reading.
      const first3 = { last_seq: 3, messages: 3 }
      const streams = manifest.streams.map((stream) =>
        stream.name === names.events
          ? { ...stream, messages: 3, lastSeq: 3, state: { ...stream.state, ...first3 } }
          : stream
      )
      writeFileSync(file, manifestText({ ...manifest, streams }))
      const hook = yield* receiver()
      const other = yield* otherServer
      yield* at(
        place,
        other,
        Effect.gen(function* () {
          yield* restored(directory)
          yield* endpoint({ url: hook.url })
          yield* worker()
          yield* hook.received(5)
          yield* quiet
          assert.deepStrictEqual((yield* problems).list, [])
        })
      )
    })
  )

  scenario("refuses a broker with an installation, and other names", (place) =>
    Effect.gen(function* () {
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const { code, err } = yield* run("restore", directory, ...flagsOf(place))
      assert.strictEqual(code, 1)
      assert.include(err.join("\n"), "there is an installation on this broker already")
      const dry = yield* run("restore", directory, "--dry-run", ...flagsOf(place))
      assert.strictEqual(dry.code, 1)
      assert.match(dry.err.join("\n"), /all files of the backup are intact, but there is an inst/)
      const named = yield* run("restore", directory, "--nats", place.url, "--prefix", "OTHER_")
      assert.strictEqual(named.code, 1)
      assert.include(named.err.join("\n"), `--prefix ${place.prefix} --events ${place.eventRoot}`)
    })
  )

  scenario("asks again while a cluster still reports what was reserved to find space", (place) =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      let refused = 0
      const error = {
        ...{ code: 400, err_code: 10005 },
        description: "no suitable peers for placement, insufficient storage"
      }
      const other = yield* otherServer
      const restoring = restoredOver(directory, async (request, subject, ...rest) => {
        if (refused === 2 || !subject.includes(".STREAM.RESTORE.")) return request(subject, ...rest)
        refused += 1
        return { json: () => ({ error }) } as unknown as Msg
      })
      assert.isAbove((yield* at(place, other, restoring)).streams, 0)
      assert.strictEqual(refused, 2)
    })
  )

  scenario("says that all servers are needed if one does not answer that has a stream", (place) =>
    Effect.gen(function* () {
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const other = yield* otherServer
      const restoring = restoredOver(
        directory,
        async (request, subject, ...rest) => {
          if (subject.includes(".STREAM.RESTORE.")) throw new TimeoutError()
          return request(subject, ...rest)
        },
        { server: () => ({ version: "2.15.1", cluster: "three" }) }
      )
      const { message } = yield* at(place, other, Effect.flip(restoring))
      assert.include(
        message,
        ": bring all servers of the cluster back, then run `petrel restore` again"
      )
    })
  )

  scenario("sends the first chunk again while its server has not heard who takes it", (place) =>
    Effect.gen(function* () {
      yield* publish("invoice.paid")
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const sent = new Map<string, number>()
      const other = yield* otherServer
      const restoring = restoredOver(directory, (request, subject, ...rest) => {
        if (!subject.startsWith("$JS.SNAPSHOT.RESTORE.")) return request(subject, ...rest)
        const times = (sent.get(subject) ?? 0) + 1
        sent.set(subject, times)
        return request(times <= 2 ? "nobody.here" : subject, ...rest)
      })
      assert.strictEqual((yield* at(place, other, restoring)).streams, sent.size)
      assert.isAbove(sent.size, 0)
      yield* at(
        place,
        other,
        Effect.map(problems, ({ list }) => assert.deepStrictEqual(list, []))
      )
    })
  )

  scenario("leaves a stream that only copies others without subjects", (place) =>
    Effect.gen(function* () {
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const subjects = Effect.flatMap(Broker, ({ names, streamInfo }) =>
        Effect.map(streamInfo("look", names.configuration), ({ config }) => config.subjects ?? [])
      )
      assert.deepStrictEqual(yield* subjects, [])
      const other = yield* otherServer
      const restoredSubjects = Effect.andThen(restored(directory), subjects)
      assert.deepStrictEqual(yield* at(place, other, restoredSubjects), [])
    })
  )

  scenario("refuses a broker with too little space, or whose streams take its subjects", (place) =>
    Effect.gen(function* () {
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      /** What a restore, or only a look, says and refuses. */
      const refusals = (server: TestServer) =>
        Effect.forEach([["--dry-run"], []], (flags) =>
          Effect.map(
            run("restore", directory, ...flags, ...flagsOf(place, server)),
            ({ code, err }) => {
              assert.strictEqual(code, 1)
              return err.join("\n")
            }
          )
        )
      const small = yield* serverWith(`
        accounts { A { jetstream: { max_file: 1KB }, users: [ { user: a, password: a } ] } }
        no_auth_user: a`)
      for (const said of yield* refusals(small)) {
        assert.match(said, /the streams need .* raise the account's max_file/)
        assert.notInclude(said, "petrel init")
      }
      const other = yield* otherServer
      const { subjects } = (yield* Broker).names
      const foreign = { name: "FOREIGN", subjects: [subjects.eventsOf("acme")] }
      const addForeign = Effect.flatMap(natsClients, ({ ask, jsm }) =>
        ask("make it", () => jsm.streams.add(foreign))
      )
      yield* at(place, other, addForeign)
      for (const said of yield* refusals(other))
        assert.match(said, /the stream FOREIGN on this broker takes subjects that \S*EVENTS needs/)
      assert.deepStrictEqual(yield* at(place, other, streams), [foreign.name])
    })
  )

  scenario("that begins anew waits for the space of what it removed", (place) =>
    Effect.gen(function* () {
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const other = yield* serverWith(`
        accounts { A { jetstream: { max_file: 100GB }, users: [ { user: a, password: a } ] } }
        no_auth_user: a`)
      const restoring = Effect.gen(function* () {
        const { ask, jsm } = yield* natsClients
        yield* markRestoring("broken off", 1)
        // Takes nearly all, as what was removed does until the servers report that it was.
        const removed = {
          name: "REMOVED",
          subjects: ["removed"],
          max_bytes: 100 * 1_024 ** 3 - 1_000
        }
        yield* ask("make it", () => jsm.streams.add(removed))
        const later = ask("remove it", () => jsm.streams.delete("REMOVED"))
        yield* Effect.forkChild(Effect.delay(later, "2 seconds"))
        return yield* restored(directory)
      })
      assert.isTrue((yield* at(place, other, restoring)).resumed)
    })
  )

  if (canMount())
    scenario("says what to do if the broker's disk is full, and begins anew", (place) =>
      Effect.gen(function* () {
        yield* endpoint()
        yield* publishMany(1_000, "invoice.paid", 1_000)
        const directory = join(yield* folder, "copy")
        yield* backedUp(directory)
        const other = yield* Effect.acquireRelease(
          Effect.promise(() => startServer({ diskBytes: 32 * 1024 ** 2 })),
          (server) => Effect.promise(() => server.stop())
        )
        yield* at(
          place,
          other,
          Effect.gen(function* () {
            const tell = (step: RestoreStep) => {
              if (step.event === "restoring" && step.stream.endsWith("HISTORY")) other.fillDisk()
            }
            const { message } = yield* Effect.flip(restore({ directory, tell }))
            assert.include(message, "no space left on device")
            assert.include(message, ": free some space on the broker's disk, then run `petrel rest")
            other.emptyDisk()
            const { resumed } = yield* restored(directory)
            assert.isTrue(resumed)
            assert.deepStrictEqual((yield* problems).list, [])
          })
        )
      })
    )

  scenario("that is killed is not taken for an installation, and begins anew", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const events = 2_000
      yield* publishMany(events, "invoice.paid", 2_000)
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const other = yield* otherServer
      const process = yield* start("restore", directory, ...flagsOf(place, other))
      const isMade = (name: string) =>
        at(
          place,
          other,
          Effect.map(streams, (all) => all.includes(`${place.prefix}${name}`))
        )
      yield* at(
        place,
        other,
        eventually(streams, (all) => all.includes(`${place.prefix}HISTORY`))
      )
      yield* process.signal("SIGKILL")
      assert.strictEqual(yield* process.ended, 128)
      assert.isTrue(yield* isMade("RESTORE"))
      const sender = ["publish", "acme", "invoice.paid", "{}"]
      for (const command of [["init"], ["worker"], ["backup", `${directory}2`], sender]) {
        const { code, err } = yield* run(...command, ...flagsOf(place, other))
        assert.strictEqual(code, 1)
        assert.include(err.join("\n"), "run `petrel restore` again")
      }
      const again = yield* run("restore", directory, ...flagsOf(place, other))
      assert.strictEqual(again.code, 0, again.err.join("\n"))
      assert.isFalse(yield* isMade("RESTORE"))
      yield* at(
        place,
        other,
        Effect.gen(function* () {
          yield* worker()
          yield* quiet
          const { list, tally } = yield* problems
          assert.deepStrictEqual(list, [])
          assert.strictEqual(tally.delivered, events)
        })
      )
      assert.strictEqual(hook.requests.length, events)
    })
  )

  scenario("that lacks its last step only does that when it is run again", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* publishMany(3)
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      // One user may do all but the last step.
      const other = yield* serverWith(`
        authorization {
          users: [
            { user: all, password: all }
            { user: most, password: most, permissions: {
              publish: { allow: ">", deny: "$JS.API.STREAM.UPDATE.${place.prefix}INTAKE" } } }
          ]
        }
        no_auth_user: all`)
      const flags = flagsOf(place, other)
      const most = flagsOf(place, { url: other.url.replace("//", "//most:most@") })
      const first = yield* run("restore", directory, ...most)
      assert.strictEqual(first.code, 1, first.out.join("\n"))
      const status = yield* at(place, other, Effect.map(readSurvey, conditionsOf))
      const closed = status.problems.find(({ code }) => code === "stream-closed")
      assert.match(closed?.text ?? "", /INTAKE .* accept no messages.*`petrel restore`/)
      const published = at(place, other, publish("late"))
      assert.include(`${yield* Effect.flip(published)}`, "jetstream is not enabled")
      const planned = yield* run("restore", directory, "--dry-run", ...flags)
      assert.match(planned.out.join("\n"), /interrupted at its last step.*nothing was changed/s)
      assert.include(`${yield* Effect.flip(published)}`, "jetstream is not enabled")
      const again = yield* run("restore", directory, ...flags)
      assert.strictEqual(again.code, 0, again.err.join("\n"))
      assert.match(again.out.join("\n"), /that step is done now: the broker accepts messages/)
      yield* published
      yield* at(
        place,
        other,
        Effect.gen(function* () {
          yield* worker()
          yield* hook.received(4)
          yield* quiet
          assert.deepStrictEqual((yield* problems).list, [])
        })
      )
      const third = yield* run("restore", directory, ...flags)
      assert.include(third.err.join("\n"), "there is an installation on this broker already")
    })
  )

  scenario("takes no event, endpoint or token before it is restored as a whole", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* publishMany(3)
      const directory = join(yield* folder, "copy")
      yield* backedUp(directory)
      const { names } = yield* Broker
      const comesIn = storeIncoming({
        ...{ tenant: "acme", source: "stripe", id: "evt_1", type: "invoice.paid" },
        ...{ body: Buffer.from("{}"), contentType: "application/json" }
      } satisfies IncomingEvent)
      const elsewhere = yield* otherServer
      yield* at(
        place,
        elsewhere,
        Effect.gen(function* () {
          const brokenOff = restore({
            directory,
            tell: (step) => {
              if (step.event === "restoring" && step.stream === `KV_${names.buckets.workers}`)
                throw new Error("broken off")
            }
          })
          yield* Effect.exit(brokenOff)
          assert.include(yield* streams, names.events)
          // It would be acknowledged, and removed when the restore begins anew.
          assert.include(`${yield* Effect.flip(publish("early"))}`, "jetstream is not enabled")
          assert.include(`${yield* Effect.flip(comesIn)}`, "NotStored")
          const added = yield* run(
            ...["endpoint", "add", "acme/late", "--url", "https://example.com"],
            ...flagsOf(place, elsewhere)
          )
          assert.strictEqual(added.code, 1)
          assert.include(added.err.join("\n"), "nothing was stored")
          const made = yield* run("token", "create", "--operator", ...flagsOf(place, elsewhere))
          assert.strictEqual(made.code, 1)
          // What was broken off may have had more partitions.
          const { ask, jsm } = yield* natsClients
          const more = { name: names.deliveries(7), subjects: ["another.backup"] }
          yield* ask("make it", () => jsm.streams.add(more))
          yield* restored(directory)
          assert.notInclude(yield* streams, more.name)
          yield* publish("late")
          yield* comesIn
          yield* worker()
          yield* hook.received(5)
          yield* quiet
          assert.deepStrictEqual((yield* problems).list, [])
        })
      )
    })
  )
})
