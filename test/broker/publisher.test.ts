import { assert, describe } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { isTooLarge, messageTooLarge, type PublishError } from "../../src/broker/publication.ts"
import { Publisher } from "../../src/broker/publisher.ts"
import { Unanswered } from "../../src/broker/unanswered.ts"
import { wireOf } from "../../src/broker/wire.ts"
import { timers } from "../../src/time/timers.ts"
import type { Installation } from "../kit/engine.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"
import type { TcpProxy } from "../kit/tcp-proxy.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"

const { scenario } = onServer()

const openPublisher = (timeoutMs?: number) =>
  Effect.flatMap(natsClients, ({ connection, names }) =>
    Effect.acquireRelease(
      Effect.sync(
        () => new Publisher(wireOf(connection), new Unanswered(names.streamOf), names, timeoutMs)
      ),
      (publisher) => Effect.sync(() => publisher.close())
    )
  )

/** The broker by a longer way. */
const farFrom = (place: Installation, { port }: TcpProxy) =>
  Effect.map(
    Layer.build(Layer.fresh(connectTo({ ...place, url: `nats://127.0.0.1:${port}` }))),
    Context.get(Broker)
  )

const told = ({ code, reason }: PublishError) => ({ code, reason })

describe("a publisher", () => {
  scenario("says where each message was stored, and what was stored before", () =>
    Effect.gen(function* () {
      const { ask, jsm, names, publisher } = yield* natsClients
      const subject = names.subjects.dead("acme", "hook")
      const bodies = Array.from({ length: 2_000 }, (_, index) => String(index))
      const acks = yield* Effect.forEach(
        bodies,
        (body) => publisher.publish(subject, body, [["Nats-Msg-Id", body]]),
        { concurrency: "unbounded" }
      )
      for (const index of [0, 1, 999, 1_999]) {
        const seq = acks[index]?.seq ?? 0
        const message = yield* ask("get", () => jsm.streams.getMessage(names.dead, { seq }))
        assert.strictEqual(message?.string(), bodies[index])
      }
      assert.isTrue(acks.every(({ duplicate, stream }) => !duplicate && stream === names.dead))
      const again = yield* publisher.publish(subject, "7", [["Nats-Msg-Id", "7"]])
      assert.deepStrictEqual(again, { ...acks[7], duplicate: true })
    })
  )

  scenario("says so where no stream takes the subject", () =>
    Effect.gen(function* () {
      const { publisher } = yield* natsClients
      const error = yield* Effect.flip(publisher.publish("nobody.takes.this", "", []))
      assert.deepStrictEqual(told(error), { reason: "no-stream", code: 503 })
      assert.include(error.message, "petrel init")
    })
  )

  scenario("says why the broker refused a message, or why it was not even sent", () =>
    Effect.gen(function* () {
      const { connection, names, publisher } = yield* natsClients
      const subject = names.subjects.dead("acme", "hook")
      const publish = (body: string | Uint8Array, name: string, value: string) =>
        publisher.publish(subject, body, [[name, value]])
      const conflict = publish("", "Nats-Expected-Last-Sequence", "99")
      const tooLarge = publish(
        new Uint8Array((connection.info?.max_payload ?? 0) + 1),
        "Nats-Msg-Id",
        "1"
      )
      const brokenHeader = publish("", "x-note", "two\nlines")
      const fine = publish("", "Nats-Msg-Id", "2")
      const [refused, large, broken, stored] = yield* Effect.all(
        [Effect.flip(conflict), Effect.flip(tooLarge), Effect.flip(brokenHeader), fine],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(told(refused), { reason: "rejected", code: 10071 })
      assert.include(refused.message, "wrong last sequence")
      assert.deepStrictEqual(told(large), { reason: "rejected", code: messageTooLarge })
      assert.deepStrictEqual([large, broken, refused].map(isTooLarge), [true, false, false])
      assert.include(large.message, "max_payload")
      assert.deepStrictEqual(told(broken), { reason: "rejected", code: 0 })
      assert.strictEqual(stored.stream, names.dead)
    })
  )

  scenario("counts a stream as silent until something is stored there", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const unanswered = new Unanswered(names.streamOf)
      const publisher = yield* Effect.acquireRelease(
        Effect.sync(() => new Publisher(wireOf(connection), unanswered, names)),
        (opened) => Effect.sync(() => opened.close())
      )
      const subject = names.subjects.dead("acme", "hook")
      yield* publisher.publish(subject, "", [["Nats-Msg-Id", "1"]])
      // Sent after what is stored.
      const now = timers.monotonicMs() + 12_000
      for (let n = 0; n < 3; n++) unanswered.timedOut(subject, now - 11_000, now)
      const silent = [{ stream: names.dead, ms: 11_000 }]
      yield* Effect.flip(publisher.publish(subject, "", [["Nats-Expected-Last-Sequence", "99"]]))
      assert.deepStrictEqual(unanswered.streams(now), silent)
      const again = yield* publisher.publish(subject, "", [["Nats-Msg-Id", "1"]])
      assert.isTrue(again.duplicate)
      assert.deepStrictEqual(unanswered.streams(now), silent)
      yield* publisher.publish(subject, "", [])
      assert.deepStrictEqual(unanswered.streams(now), [])
    })
  )

  scenario("takes no answer but the stream's for an acknowledgement", () =>
    Effect.gen(function* () {
      const { connection } = yield* natsClients
      const publisher = yield* openPublisher()
      for (const [subject, answer] of [
        ["odd.text", "thanks"],
        ["odd.json", "{}"],
        ["odd.null", "null"]
      ] as const) {
        const subscription = connection.subscribe(subject, {
          callback: (_, message) => void message.respond(answer)
        })
        const error = yield* Effect.flip(publisher.publish(subject, "", []))
        assert.deepStrictEqual(told(error), { reason: "rejected", code: 0 })
        subscription.unsubscribe()
      }
    })
  )

  scenario(
    "gives up waiting in time; under the same id the message is then stored once",
    (_, server) =>
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const publisher = yield* openPublisher(300)
        const subject = names.subjects.dead("acme", "hook")
        const publish = publisher.publish(subject, "[1]", [["Nats-Msg-Id", "1"]])
        server.pause()
        const error = yield* Effect.ensuring(
          Effect.flip(publish),
          Effect.sync(() => server.resume())
        )
        assert.deepStrictEqual(told(error), { reason: "timeout", code: 0 })
        const info = ask("look", () => jsm.streams.info(names.dead))
        yield* eventually(info, ({ state }) => state.messages === 1)
        assert.strictEqual((yield* publish).seq, 1)
        assert.strictEqual((yield* info).state.messages, 1)
      })
  )

  scenario("fails what is outstanding, and all that comes later, once it is closed", (_, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const publisher = yield* openPublisher()
      const publish = Effect.flip(publisher.publish(names.subjects.dead("acme", "hook"), "", []))
      server.pause()
      const outstanding = yield* Effect.forkChild(publish, { startImmediately: true })
      publisher.close()
      const closed = { reason: "closed", code: 0 }
      assert.deepStrictEqual(told(yield* Fiber.join(outstanding)), closed)
      assert.deepStrictEqual(told(yield* publish), closed)
      server.resume()
    })
  )

  scenario("fails as closed where the connection is", (place) =>
    Effect.gen(function* () {
      const { connection, names, publisher } = yield* Effect.provideServiceEffect(
        natsClients,
        Broker,
        place.connection
      )
      yield* Effect.promise(() => connection.close())
      const error = yield* Effect.flip(
        publisher.publish(names.subjects.dead("acme", "hook"), "", [])
      )
      assert.deepStrictEqual(told(error), { reason: "closed", code: 0 })
    })
  )

  scenario("knows by a late answer what it stored itself, and that another did not", (_, server) =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const publisher = yield* openPublisher(300)
      const subject = names.subjects.dead("acme", "hook")
      const publish = (id: string, body: string) =>
        publisher.publish(subject, body, [["Nats-Msg-Id", id]])
      const revise = publisher.publish("$KV.nobody.a", "", [])
      server.pause()
      const failed = yield* Effect.all(
        [publish("1", "[1]"), publish("2", "[2]"), revise].map((each) => Effect.flip(each)),
        { concurrency: "unbounded" }
      ).pipe(Effect.ensuring(Effect.sync(() => server.resume())))
      assert.deepStrictEqual(
        failed.map(({ reason }) => reason),
        ["timeout", "timeout", "timeout"]
      )
      const info = ask("look", () => jsm.streams.info(names.dead))
      yield* eventually(info, ({ state }) => state.messages === 2)
      const [same, other] = [yield* publish("1", "[1]"), yield* publish("2", "[other]")]
      assert.deepStrictEqual([same.seq, same.duplicate], [1, false])
      assert.deepStrictEqual([other.seq, other.duplicate], [2, true])
      assert.strictEqual(told(yield* Effect.flip(revise)).reason, "no-stream")
      assert.strictEqual((yield* info).state.messages, 2)
    })
  )

  scenario("waits on for what has no answer, instead of sending it again", (_, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const publisher = yield* openPublisher(1_000)
      const publish = publisher.publish(names.subjects.dead("acme", "hook"), "[1]", [
        ["Nats-Msg-Id", "1"]
      ])
      server.pause()
      yield* Effect.flip(publish)
      const again = yield* Effect.forkChild(publish, { startImmediately: true })
      server.resume()
      const { duplicate, seq } = yield* Fiber.join(again)
      assert.deepStrictEqual([seq, duplicate], [1, false])
    })
  )

  scenario("goes at the pace of a broker that is slower than its time-out", (place, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const proxy = yield* tcpProxy(server.port)
      const far = yield* farFrom(place, proxy)
      const publisher = yield* Effect.provideService(openPublisher(200), Broker, far)
      const publish = (id: string) =>
        publisher.publish(names.subjects.dead("acme", "hook"), id, [["Nats-Msg-Id", id]])
      yield* publish("before")
      yield* proxy.delay(350)
      yield* Effect.flip(publish("first"))
      yield* eventually(Effect.option(publish("first")), Option.isSome)
      // Not one of those that come after it is too late.
      for (const id of ["a", "b", "c"]) assert.isFalse((yield* publish(id)).duplicate)
    })
  )

  scenario("sends again what was under way on a connection that is gone", (place, server) =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const proxy = yield* tcpProxy(server.port)
      const far = yield* farFrom(place, proxy)
      const publisher = yield* Effect.provideService(openPublisher(2_000), Broker, far)
      const back = new Promise<void>((resolve) => {
        far.onReconnect(() => {
          publisher.reconnected()
          resolve()
        })
      })
      const publish = publisher.publish(names.subjects.dead("acme", "hook"), "[1]", [
        ["Nats-Msg-Id", "1"]
      ])
      yield* proxy.delay(60_000)
      yield* Effect.flip(publish)
      yield* proxy.delay(0)
      yield* proxy.cut
      yield* proxy.join
      yield* Effect.promise(() => back)
      const { duplicate, seq } = yield* publish
      assert.deepStrictEqual([seq, duplicate], [1, false])
      const info = yield* ask("look", () => jsm.streams.info(names.dead))
      assert.strictEqual(info.state.messages, 1)
    })
  )
})
