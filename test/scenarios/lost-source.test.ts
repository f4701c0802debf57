import { assert, describe } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { Effect, Schedule, Stream } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import type { Change } from "../../src/broker/init.ts"
import { init } from "../../src/broker/init.ts"
import { readStream } from "../../src/broker/scan.ts"
import { readOrigin } from "../../src/domain/origin.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { quiet as idle } from "../kit/consistency.ts"
import { endpoint, eventually, testTopology, worker } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { powerCut } from "../kit/power-cut.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { publisherOf, story, withTenants, workerOn } from "../kit/tenant-story.ts"

const brief = { ...withTenants, eventDedupe: 1_000 }

/** Publishes as acme, again until the broker answers. */
const publisher = (server: TestServer) =>
  Effect.map(
    publisherOf(server, "acme"),
    ({ publish }) =>
      (...bodies: ReadonlyArray<string>) =>
        Effect.forEach(bodies, (body) =>
          Effect.retry(publish("events.acme.a", body), Schedule.spaced("100 millis"))
        )
  )

const messagesIn = (stream: string) =>
  Effect.gen(function* () {
    const { ask, jsm } = yield* natsClients
    return (yield* ask("count", () => jsm.streams.info(stream))).state.messages
  })

/** The last sequence of a source that EVENTS has copied. */
const copied = Effect.fnUntraced(function* (source: string) {
  const { names, readMessage } = yield* natsClients
  const last = yield* readMessage("look", names.events, { last_by_subj: ">" })
  const origin = readOrigin(last?.header.get("Nats-Stream-Source"))
  return origin?.stream.startsWith(source) === true ? origin.seq : 0
})

const bodiesOf = ({ requests }: { readonly requests: ReadonlyArray<{ readonly body: Buffer }> }) =>
  requests.map(({ body }) => body.toString())

const problems = Effect.gen(function* () {
  const { judgement } = yield* audit({})
  return judgement.problems.list.map(({ kind, stream, streamSeq }) => [kind, stream, streamSeq])
})

const statusCodes = Effect.map(readStatus, ({ problems }) => problems.map(({ code }) => code))

const restarts = (changes: ReadonlyArray<Change>) =>
  changes.flatMap(({ fields, what }) => (what.startsWith("source ") ? [[what, ...fields]] : []))

describe.concurrent("a broker that loses the end of a tenant's stream after it was copied", () => {
  story(
    "shows it, and copies what took the sequences, and nothing twice, once init was run again",
    (server) =>
      Effect.gen(function* () {
        const { names } = yield* natsClients
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const log = makeLog()
        yield* Effect.provide(workerOn(server), log.layer)
        const publishAll = yield* publisher(server)
        const stream = names.tenantEvents("acme")
        const power = powerCut(server, [stream], { account: "ACME" })
        yield* publishAll("1", "2", "3")
        yield* hook.received(3)
        yield* power.remember
        yield* publishAll("4", "5", "6")
        yield* hook.received(6)
        yield* power.cut
        // One of them is equal to the one that was lost, but for its time.
        const acknowledged = yield* publishAll("4", "five", "six", "7")
        assert.deepStrictEqual(
          acknowledged.map(({ seq }) => seq),
          [4, 5, 6, 7]
        )
        yield* hook.received(7)
        assert.deepStrictEqual(yield* problems, [["source-diverged", stream, 4]])
        yield* eventually(statusCodes, (codes) => codes.includes("source-diverged"))
        yield* eventually(
          Effect.sync(() => log.count("this user may not start sources again: run `petrel init`")),
          (count) => count > 0
        )
        // Nobody remembers the origin of 7, which comes again.
        yield* eventually(messagesIn(names.origins), (count) => count === 0)
        assert.deepStrictEqual(restarts(yield* init(brief)), [
          [`source ${stream} of ${names.events}`, "starts again at 4, having lost 4 to 6"]
        ])
        yield* hook.received(10)
        yield* publishAll("8")
        yield* hook.received(11)
        yield* idle
        assert.deepStrictEqual(bodiesOf(hook).sort(), [
          ...["1", "2", "3", "4", "4", "5", "6", "7", "8"],
          ...["five", "six"]
        ])
        assert.deepStrictEqual(yield* problems, [])
        const { judgement } = yield* audit({})
        assert.deepInclude(judgement.events, { stored: 12, repeated: 1, deliveredAgain: 0 })
        assert.isEmpty(yield* statusCodes)
        assert.isTrue((yield* init(brief)).every(({ change }) => change === "unchanged"))
      }),
    { ...withTenants, eventDedupe: 1_000 }
  )

  story("copies what took the sequences by itself where the worker may change streams", (server) =>
    Effect.gen(function* () {
      const { names } = yield* natsClients
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const running = yield* workerOn(server, "w1", "operator")
      const publishAll = yield* publisher(server)
      const stream = names.tenantEvents("acme")
      const power = powerCut(server, [stream], { account: "ACME" })
      yield* publishAll("1", "2", "3")
      yield* hook.received(3)
      yield* power.remember
      yield* publishAll("4", "5", "6")
      yield* hook.received(6)
      yield* power.cut
      yield* publishAll("four", "five")
      yield* hook.received(8)
      yield* publishAll("six", "seven")
      yield* hook.received(10)
      yield* running.stop

      // While no worker runs, all sequences are given again, and later ones copied.
      yield* power.cut
      yield* publishAll("iv", "v", "vi", "vii", "viii", "ix")
      yield* eventually(copied(stream), (seq) => seq === 9)
      yield* workerOn(server, "w2", "operator")
      yield* hook.received(16)
      yield* idle
      assert.deepStrictEqual(bodiesOf(hook).sort(), [
        ...["1", "2", "3", "4", "5", "6", "five", "four", "iv", "ix", "seven", "six"],
        ...["v", "vi", "vii", "viii"]
      ])
      assert.deepStrictEqual(yield* problems, [])
      assert.isEmpty(restarts(yield* init(withTenants)))
    })
  )

  story("begins anew with a stream that was made anew", (server) =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      yield* workerOn(server)
      const publishAll = yield* publisher(server)
      const stream = names.tenantEvents("acme")
      yield* publishAll("1", "2")
      yield* hook.received(2)
      const apiPrefix = names.subjects.tenantApi("acme")
      yield* Effect.promise(async () =>
        (await jetstreamManager(connection, { apiPrefix })).streams.delete(stream)
      )
      assert.deepStrictEqual(restarts(yield* init(withTenants)), [
        [`source ${stream} of ${names.events}`, "starts again at 1, having lost 1 to 2"]
      ])
      yield* publishAll("one", "two", "three")
      yield* hook.received(5)
      yield* idle
      assert.deepStrictEqual(bodiesOf(hook).sort(), ["1", "2", "one", "three", "two"])
      assert.deepStrictEqual(yield* problems, [])
    })
  )
})

/** Revisions of endpoints whose changes are in the stream that does not expire. */
const copiedChanges = Effect.gen(function* () {
  const { names } = yield* natsClients
  const messages = yield* Stream.runCollect(
    readStream({ stream: names.configuration, subjects: [">"] })
  )
  return messages.map(({ subject }) => subject.split(".").at(-3) ?? "")
})

describe.concurrent("a broker that loses the end of the history after changes were copied", () => {
  for (const isAlone of [false, true])
    outage(
      `copies the changes that took the sequences${isAlone ? ", once init was run again" : ""}`,
      (_, server) =>
        Effect.gen(function* () {
          const { names } = yield* natsClients
          const power = powerCut(server, [names.history])
          yield* endpoint({ id: "kept" })
          yield* eventually(copiedChanges, ({ length }) => length === 1)
          yield* power.remember
          if (!isAlone) yield* worker()
          for (const id of ["a", "b", "c"]) yield* endpoint({ id })
          yield* eventually(copiedChanges, ({ length }) => length === 4)
          yield* power.cut
          for (const id of ["d", "e", "f", "g"]) yield* endpoint({ id })
          if (isAlone) {
            yield* eventually(copiedChanges, (ids) => ids.includes("g"))
            assert.deepStrictEqual(yield* problems, [["source-diverged", names.history, 2]])
            const restarted = restarts(yield* init(testTopology))
            assert.deepStrictEqual(restarted, [
              [
                `source ${names.history} of ${names.configuration}`,
                "starts again at 2, having lost 2 to 4"
              ]
            ])
          }
          yield* eventually(copiedChanges, (ids) =>
            ["d", "e", "f", "g"].every((id) => ids.includes(id))
          )
          assert.deepStrictEqual(yield* problems, [])
          assert.isEmpty(restarts(yield* init(testTopology)))
        })
    )
})
