import { rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { Worker } from "node:worker_threads"
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Exit, Option, Scope } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { LogUnavailable } from "../../src/projection/delivery-log.ts"
import { followHistory, type WriterReport } from "../../src/projection/follow-history.ts"
import type { ProjectionOptions } from "../../src/projection/projection.ts"
import { startProjection } from "../../src/projection/projection.ts"
import {
  answerLog,
  findAttemptsRemotely,
  getRemotely,
  remoteStatus
} from "../../src/projection/remote-log.ts"
import {
  caughtUp,
  directory,
  lookedUp,
  optionsOf,
  projecting,
  store,
  walk
} from "../kit/delivery-log.ts"
import { eventually, installation, nth } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { canMount, mountDisk } from "../kit/nats-server.ts"
import { randomFacts } from "../kit/random-facts.ts"
import { onServer, outage } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"
import { foldedRows, saidBy } from "../projection/folded-rows.ts"

vi.setConfig({ testTimeout: 90_000 })

const { scenario } = onServer()

const facts = randomFacts(31, 300)
const [first, later] = [facts.slice(0, 100), facts.slice(100)]

/** The threads that are started meanwhile. */
const threads = Effect.acquireRelease(
  Effect.sync(() => {
    const started: Array<Worker> = []
    const add = (worker: Worker) => started.push(worker)
    process.on("worker", add)
    return { started, stop: () => process.off("worker", add) }
  }),
  ({ stop }) => Effect.sync(stop)
)

/** Lets all facts grow old. */
const expire = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { config } = yield* ask("look", () => jsm.streams.info(names.history))
  const aged = { ...config, max_age: 1e9, duplicate_window: 1e9 }
  yield* ask("age", () => jsm.streams.update(names.history, aged))
  yield* eventually(
    ask("look", () => jsm.streams.info(names.history)),
    ({ state }) => state.messages === 0
  )
  yield* ask("keep", () => jsm.streams.update(names.history, config))
})

describe("a delivery log that does not follow the history", () => {
  outage("logs as the process does that it is a part of", (place, server, log) =>
    Effect.gen(function* () {
      const options = optionsOf(place, yield* directory)
      const { log: found } = yield* startProjection(options)
      yield* caughtUp(found.status)
      yield* Effect.promise(() => server.stop())
      // Its own connection, and that of the process.
      yield* eventually(
        Effect.sync(() => log.count("the broker is gone")),
        (count) => count === 2
      )
    })
  )

  scenario("is not asked, and says how far behind it is", (place) =>
    Effect.gen(function* () {
      const options = optionsOf(place, yield* directory)
      const { log } = yield* startProjection(options)
      yield* store(first)
      yield* caughtUp(log.status)
      const other = new DatabaseSync(join(options.data, "main.db"))
      other.exec("BEGIN IMMEDIATE")
      yield* store(later)
      const status = yield* eventually(
        log.status,
        ({ lag, state }) => state === "stopped" && lag.facts === later.length
      )
      assert.include(status.problem ?? "", "database is locked")
      assert.isAbove(status.lag.ms, 0)
      const unavailable = yield* Effect.flip(log.find({}))
      assert.instanceOf(unavailable, LogUnavailable)
      assert.include(unavailable.message, "database is locked")
      assert.instanceOf(yield* Effect.flip(log.get({ event: "acme.e1" })), LogUnavailable)
      other.close()
      yield* caughtUp(log.status)
      assert.deepStrictEqual(saidBy(yield* walk(log.find)), foldedRows(facts))
    })
  )

  if (canMount())
    scenario("says so when its disk is full, to whoever asks it", (place) =>
      Effect.gen(function* () {
        const at = yield* directory
        const disk = yield* Effect.acquireRelease(
          Effect.promise(() => mountDisk(8 * 1024 * 1024, at)),
          ({ remove }) => Effect.promise(remove)
        )
        // What runs in front of it sees the disk.
        const before = disk.within(process.execPath).slice(0, -1)
        yield* projecting(optionsOf(place, join(at, "log")), before)
        yield* store(first)
        yield* caughtUp(remoteStatus)
        disk.fill()
        yield* store(later)
        const status = yield* eventually(
          remoteStatus,
          ({ lag, state }) => state === "stopped" && lag.facts > 0
        )
        assert.include(status.problem ?? "", "no space is left for")
        assert.isAbove(status.lag.ms, 0)
        // Whatever it has read: nothing that it answers is older than it says, over several of its
        // attempts to write.
        for (let time = 0; time < 20; time++) {
          assert.instanceOf(yield* Effect.flip(findAttemptsRemotely({})), LogUnavailable)
          assert.instanceOf(yield* Effect.flip(getRemotely({ event: "acme.e1" })), LogUnavailable)
          yield* Effect.sleep("200 millis")
        }
        disk.empty()
        yield* caughtUp(remoteStatus)
        assert.deepStrictEqual(saidBy(yield* lookedUp(getRemotely, facts)), foldedRows(facts))
      })
    )

  scenario(
    "says once what the history has removed unread, and is level with an empty one",
    (place) =>
      Effect.gen(function* () {
        const options = optionsOf(place, yield* directory)
        yield* store(first)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { log } = yield* startProjection(options)
            yield* caughtUp(log.status)
          })
        )
        yield* store(later)
        yield* expire
        const { count, layer } = makeLog()
        const { log } = yield* Effect.provide(startProjection(options), layer)
        const isLevel = eventually(
          Effect.option(log.status),
          (known) =>
            known._tag === "Some" && known.value.lag.facts === 0 && known.value.lag.ms === 0
        )
        yield* isLevel
        yield* Effect.forEach(randomFacts(32, 5), (fact) =>
          Effect.andThen(store([fact]), caughtUp(log.status))
        )
        assert.strictEqual(count("the history has removed facts 101 to 300"), 1)
        yield* expire
        const fresh = yield* startProjection(optionsOf(place, yield* directory))
        yield* caughtUp(fresh.log.status)
        assert.strictEqual((yield* fresh.log.status).state, "following")
      })
  )

  scenario("is made again where its files were removed under it", (place) =>
    Effect.gen(function* () {
      const options = optionsOf(place, yield* directory)
      const log = makeLog()
      const projection = yield* Effect.provide(startProjection(options), log.layer)
      const { find, status } = projection.log
      yield* store(first)
      yield* caughtUp(status)
      rmSync(options.data, { recursive: true })
      yield* store(later)
      const expected = foldedRows(facts)
      const rows = yield* eventually(
        Effect.orElseSucceed(walk(find), () => []),
        (shown) => Object.keys(saidBy(shown)).length === Object.keys(expected).length
      )
      assert.deepStrictEqual(saidBy(rows), expected)
      assert.strictEqual(log.count("were removed while the delivery log had them open"), 1)
    })
  )

  scenario("is not level from when it is known that its files were removed", (place, server) =>
    Effect.gen(function* () {
      const proxy = yield* tcpProxy(server.port)
      const { broker, ...options } = optionsOf(place, yield* directory)
      const url = `nats://127.0.0.1:${proxy.port}`
      const { log } = yield* startProjection({ ...options, broker: { ...broker, url } })
      yield* store(first)
      yield* caughtUp(log.status)
      // The writer waits for the broker, and finds out nothing.
      yield* proxy.hold
      rmSync(options.data, { recursive: true })
      assert.instanceOf(yield* Effect.flip(log.find({})), LogUnavailable)
      const { lag, position, state } = yield* log.status
      assert.deepStrictEqual([state, position, lag.facts], ["stopped", 0, first.length])
      yield* proxy.release
      yield* eventually(log.status, ({ position, state }) => state === "following" && position > 0)
      assert.deepStrictEqual(saidBy(yield* walk(log.find)), foldedRows(first))
    })
  )

  scenario("never tells, while its files are made again, that it has read all", (place) =>
    Effect.gen(function* () {
      const { data, ...options } = optionsOf(place, yield* directory)
      const reports: Array<WriterReport> = []
      const isFollowing = ({ position, state }: WriterReport) =>
        state === "following" && position === first.length
      const following = eventually(
        Effect.sync(() => reports.at(-1)),
        (report) => report !== undefined && isFollowing(report)
      )
      yield* store(first)
      yield* Effect.forkScoped(
        followHistory(
          { ...options, directory: data, replacesOther: false },
          {
            report: (report) => reports.push(report),
            warn: () => undefined,
            wanted: () => undefined
          }
        )
      )
      yield* following
      rmSync(data, { recursive: true })
      yield* eventually(
        Effect.sync(() => reports.some(({ state }) => state === "stopped")),
        (isStopped) => isStopped
      )
      yield* following
      const from = reports.findIndex(({ state }) => state === "stopped")
      for (const report of reports.slice(from).filter((one) => !isFollowing(one)))
        assert.isBelow(report.position, report.last, report.problem ?? report.state)
    })
  )

  scenario("says that its files were removed where it can add none to them", (place) =>
    Effect.gen(function* () {
      const { broker: _, data, ...options } = optionsOf(place, yield* directory)
      // What ends first makes a file of its own.
      const firstEnd = facts.findIndex(
        ({ kind }) => kind === "delivered" || kind === "dead-lettered"
      )
      const removed = yield* Deferred.make<void>()
      const warnings: Array<string> = []
      let position = 0
      const remove = () => {
        rmSync(data, { recursive: true })
        Deferred.doneUnsafe(removed, Effect.void)
      }
      yield* store(facts.slice(0, firstEnd))
      yield* Effect.forkScoped(
        followHistory(
          { ...options, directory: data, replacesOther: false },
          {
            report: (report) => {
              if (position < firstEnd && report.position === firstEnd) remove()
              ;({ position } = report)
            },
            warn: (sentence) => warnings.push(sentence),
            wanted: () => undefined
          }
        )
      )
      // It is read within the pause after the report.
      yield* Deferred.await(removed)
      yield* store(facts.slice(firstEnd))
      yield* eventually(
        Effect.sync(() => position),
        (now) => now === facts.length
      )
      assert.deepStrictEqual(
        warnings.filter((sentence) => sentence.includes("cannot be written")),
        []
      )
      assert.isTrue(warnings.some((sentence) => sentence.includes("had them open")))
    })
  )

  scenario("waits for another one that has its directory, and goes on where that ends", (place) =>
    Effect.gen(function* () {
      const options = optionsOf(place, yield* directory)
      const one = yield* projecting(options)
      yield* store(first)
      yield* caughtUp(remoteStatus)
      const log = makeLog()
      const two = yield* Effect.provide(startProjection(options), log.layer)
      yield* answerLog(two)
      yield* eventually(Effect.option(two.log.status), Option.isSome)
      const { problem, state } = yield* two.log.status
      assert.strictEqual(state, "stopped")
      assert.include(problem ?? "", "another console keeps its delivery log in")
      assert.instanceOf(yield* Effect.flip(two.log.find({})), LogUnavailable)
      // Of the two, the one that can answer does.
      for (let time = 0; time < 5; time++) {
        assert.strictEqual((yield* remoteStatus).state, "following")
        assert.isNotEmpty((yield* findAttemptsRemotely({})).attempts)
      }
      yield* one.kill9
      yield* store(later)
      yield* caughtUp(two.log.status)
      assert.deepStrictEqual(saidBy(yield* walk(two.log.find)), foldedRows(facts))
      // Longer than a message may be: it comes in pieces.
      const { attempts } = yield* findAttemptsRemotely({ limit: 200 })
      assert.isAbove(JSON.stringify(attempts).length, 16_384)
      assert.deepStrictEqual(attempts, (yield* two.log.findAttempts({ limit: 200 })).attempts)
      assert.strictEqual(log.count("another console keeps its delivery log in"), 1)
    })
  )

  scenario("leaves the files of another installation as they are, unless told", (place, server) =>
    Effect.gen(function* () {
      const options = optionsOf(place, yield* directory)
      const file = () => statSync(join(options.data, "main.db")).ino
      const shown = (from: ProjectionOptions) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { log } = yield* startProjection(from)
            yield* caughtUp(log.status)
            return saidBy(yield* walk(log.find))
          })
        )
      yield* store(first)
      const kept = yield* shown(options)
      assert.deepStrictEqual(kept, foldedRows(first))
      const made = file()
      const elsewhere = installation(server)
      yield* elsewhere.run(
        Effect.gen(function* () {
          yield* store(facts)
          const misled = optionsOf(elsewhere, options.data)
          yield* Effect.scoped(
            Effect.gen(function* () {
              const { log } = yield* startProjection(misled)
              const problem = yield* eventually(
                Effect.match(log.status, {
                  onFailure: () => null,
                  onSuccess: ({ problem }) => problem
                }),
                (text) => text !== null
              )
              assert.match(problem ?? "", /rows of another installation.* --replace-log/)
              assert.instanceOf(yield* Effect.flip(log.find({})), LogUnavailable)
            })
          )
          yield* Effect.provideService(
            Effect.map(shown(options), (rows) => assert.deepStrictEqual(rows, kept)),
            Broker,
            yield* place.connection
          )
          assert.strictEqual(file(), made)
          const replaced = yield* shown({ ...misled, replacesOther: true })
          assert.deepStrictEqual(replaced, foldedRows(facts))
        })
      )
    })
  )

  scenario("has its threads started again when they have ended", (place) =>
    Effect.gen(function* () {
      const { started } = yield* threads
      const log = makeLog()
      const scope = yield* Scope.make()
      yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
      const starting = Effect.provide(
        startProjection(optionsOf(place, yield* directory)),
        log.layer
      )
      const projection = yield* Scope.provide(starting, scope)
      const { log: deliveries } = projection
      yield* answerLog(projection)
      yield* store(first)
      yield* caughtUp(deliveries.status)
      const [writer, queries] = [nth(started, 0), nth(started, 1)]
      // What no thread expects to be told: its handler fails.
      writer.postMessage(null)
      const status = yield* eventually(deliveries.status, ({ state }) => state === "stopped")
      assert.include(status.problem ?? "", "its writer has ended")
      const unavailable = yield* Effect.flip(deliveries.find({}))
      assert.include(unavailable.message, "its writer has ended")
      // In a second, the first time.
      assert.deepInclude(unavailable, { retryAfter: 1 })
      assert.deepStrictEqual(yield* Effect.flip(findAttemptsRemotely({})), unavailable)
      yield* store(later)
      yield* caughtUp(deliveries.status)
      queries.postMessage(null)
      const refused = yield* eventually(
        Effect.option(Effect.flip(deliveries.find({}))),
        ({ _tag }) => _tag === "Some"
      )
      assert.include(String(refused), "the thread that searches it")
      assert.deepInclude(Option.getOrUndefined(refused), { retryAfter: 1 })
      const rows = yield* eventually(
        Effect.orElseSucceed(walk(deliveries.find), () => []),
        (found) => found.length > 0
      )
      assert.deepStrictEqual(saidBy(rows), foldedRows(facts))
      assert.strictEqual(log.count("its writer has ended"), 1)
      assert.strictEqual(log.count("the delivery log is not searched"), 1)
      yield* Scope.close(scope, Exit.void)
      assert.lengthOf(started, 4)
      assert.isTrue(started.every(({ threadId }) => threadId === -1))
    })
  )
})
