import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Stream } from "effect"
import { Broker, type Range } from "../../src/broker/broker.ts"
import { readThrough } from "../../src/broker/bulk-read.ts"
import { natsClients } from "../../src/broker/clients.ts"
import {
  endOf,
  readStream,
  scanQueue,
  seeRest,
  seeStream,
  storedAt
} from "../../src/broker/scan.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Stores bodies under a subject of the first delivery stream, or of the history. */
const store = (subject: string, bodies: ReadonlyArray<string | Uint8Array>) =>
  Effect.gen(function* () {
    const { publisher } = yield* natsClients
    return yield* Effect.forEach(bodies, (body) => publisher.publish(subject, body, []), {
      concurrency: 8
    })
  })

const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index))

describe.concurrent("a scan of a work queue", () => {
  scenario("finds all of a subject in its order, handed out or not, and nothing else", () =>
    Effect.gen(function* () {
      const { ask, js, names } = yield* natsClients
      const stream = names.deliveries(0)
      const subject = names.subjects.delivery(0, "acme", "hook")
      yield* store(names.subjects.delivery(0, "acme", "other"), numbers(10))
      yield* store(subject, numbers(600))
      const consumer = yield* ask("consumer", () => js.consumers.get(stream, names.deliverConsumer))
      yield* ask("fetch", async () => {
        for await (const message of await consumer.fetch({ max_messages: 100 })) message.nak(60_000)
      })
      const found = yield* Stream.runCollect(scanQueue(stream, subject))
      assert.deepStrictEqual(
        found.map((message) => message.string()),
        numbers(600)
      )
      assert.isTrue(found.every((message) => message.subject === subject))
    })
  )

  scenario("finds nothing where there is nothing", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stream = names.deliveries(0)
      const nothing = scanQueue(stream, names.subjects.delivery(0, "acme", "hook"))
      assert.deepStrictEqual(yield* Stream.runCollect(nothing), [])
      yield* store(names.subjects.delivery(0, "acme", "other"), ["1"])
      assert.deepStrictEqual(yield* Stream.runCollect(nothing), [])
    })
  )

  scenario("ends where its stream ended, whatever is stored meanwhile", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stream = names.deliveries(0)
      const subject = names.subjects.delivery(0, "acme", "hook")
      yield* store(subject, numbers(300))
      const end = yield* endOf(stream)
      const found = yield* scanQueue(stream, subject, 1, end).pipe(
        Stream.tap(({ seq }) => store(subject, [`again ${seq}`])),
        Stream.runCollect
      )
      assert.deepStrictEqual(
        found.map((message) => message.string()),
        numbers(300)
      )
      assert.strictEqual(yield* endOf(stream), 2 * end)
    })
  )

  scenario("goes on where the broker ends a batch early, for its size", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const subject = names.subjects.delivery(0, "acme", "hook")
      const large = new Uint8Array(900_000)
      for (let stored = 0; stored < 80; stored++) yield* store(subject, [large])
      const found = yield* Stream.runCount(scanQueue(names.deliveries(0), subject))
      assert.strictEqual(found, 80)
    })
  )
})

describe.concurrent("reading a stream", () => {
  scenario("ends with what is there, or follows what comes", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const subject = names.subjects.dead("acme", "hook")
      const range = { stream: names.dead, subjects: [names.subjects.dead("acme", "*")] }
      const texts = Stream.map(readStream(range), (message) => message.string())
      assert.deepStrictEqual(yield* Stream.runCollect(texts), [])
      yield* store(subject, ["1", "2"])
      yield* store(names.subjects.dead("other", "hook"), ["3"])
      assert.deepStrictEqual(yield* Stream.runCollect(texts), ["1", "2"])
      const followed: Array<string> = []
      yield* readStream({ ...range, follow: true }).pipe(
        Stream.runForEach((message) => Effect.sync(() => followed.push(message.string()))),
        Effect.forkScoped
      )
      yield* eventually(
        Effect.sync(() => followed.length),
        (length) => length === 2
      )
      yield* store(subject, ["4"])
      yield* eventually(
        Effect.sync(() => followed),
        (all) => all.includes("4")
      )
      assert.deepStrictEqual(followed, ["1", "2", "4"])
    })
  )

  scenario("begins at a sequence or a time", () =>
    Effect.gen(function* () {
      const { jsm, names } = yield* natsClients
      const subject = names.subjects.dead("acme", "hook")
      yield* store(subject, ["1", "2"])
      const second = yield* Effect.promise(() => jsm.streams.getMessage(names.dead, { seq: 2 }))
      const after = (second?.time.getTime() ?? 0) + 1
      const between = yield* eventually(Clock.currentTimeMillis, (now) => now > after)
      yield* store(subject, ["3"])
      const range = { stream: names.dead, subjects: [names.subjects.allDead] }
      const read = (from: { readonly fromSeq?: number; readonly fromTime?: number }) =>
        Stream.runCollect(
          Stream.map(readStream({ ...range, ...from }), (message) => message.string())
        )
      assert.deepStrictEqual(yield* read({ fromSeq: 2 }), ["2", "3"])
      assert.deepStrictEqual(yield* read({ fromSeq: 4 }), [])
      assert.deepStrictEqual(yield* read({ fromSeq: 0 }), ["1", "2", "3"])
      assert.deepStrictEqual(yield* read({ fromTime: between }), ["3"])
      assert.deepStrictEqual(yield* read({ fromTime: 0 }), ["1", "2", "3"])
    })
  )

  scenario("needs no consumer for a few of one subject, from a time on or not", () =>
    Effect.gen(function* () {
      const { names, readMessage } = yield* Broker
      const [subject, stream] = [names.subjects.dead("acme", "hook"), names.dead]
      let consumers = 0
      let most = 0
      const counted = yield* alteredBroker(({ batch, firstSince, read }) => ({
        batch: (stream, subject, from, limits) => {
          most = limits.batch
          return batch(stream, subject, from, limits)
        },
        read: (...what) => {
          consumers++
          return read(...what)
        },
        firstSince: (...what) => {
          consumers++
          return firstSince(...what)
        }
      }))
      const reading = Effect.fnUntraced(
        function* (range: Partial<Range>, most = Number.POSITIVE_INFINITY) {
          consumers = 0
          const found = yield* readStream({ stream, subjects: [subject], ...range }).pipe(
            Stream.take(most),
            Stream.runCollect
          )
          return { found, texts: found.map((message) => message.string()), consumers }
        },
        Effect.provideService(Broker, counted)
      )
      for (const body of numbers(256)) yield* store(subject, [body])
      const all = yield* reading({})
      assert.deepStrictEqual([all.texts, all.consumers], [numbers(256), 0])
      assert.deepStrictEqual(
        all.found.map(({ info }) => info.pending),
        numbers(256).map((n) => 255 - Number(n))
      )
      const at = (yield* readMessage("read", stream, { seq: 200 }))?.time.getTime() ?? 0
      const [first] = all.found.filter((message) => storedAt(message) >= at)
      const since = yield* reading({ fromTime: at })
      assert.deepStrictEqual([since.texts[0], since.consumers], [first?.string(), 0])
      assert.strictEqual(since.texts.at(-1), "255")
      for (let n = 256; n < 700; n++) yield* store(subject, [String(n)])
      const many = yield* reading({})
      assert.deepStrictEqual([many.texts, many.consumers], [numbers(700), 1])
      assert.deepStrictEqual((yield* reading({}, 100)).consumers, 0)
      const wanted = yield* reading({ wanted: 10 }, 10)
      assert.deepStrictEqual([wanted.texts, wanted.consumers, most], [numbers(10), 0, 10])
      const more = yield* reading({ wanted: 10 })
      assert.deepStrictEqual([more.texts, more.consumers], [numbers(700), 1])
      const large = new Uint8Array(200_000)
      for (let n = 0; n < 5; n++) yield* store(names.subjects.dead("large", "hook"), [large])
      const withoutBodies = yield* reading({
        subjects: [names.subjects.dead("large", "hook")],
        headersOnly: true
      })
      assert.lengthOf(withoutBodies.texts, 5)
      assert.deepStrictEqual([withoutBodies.consumers, withoutBodies.texts.at(-1)], [1, ""])
    })
  )

  scenario("counts what was stored since a time, of a subject or all", () =>
    Effect.gen(function* () {
      const { countSince, names, readMessage } = yield* Broker
      const [own, stream] = [names.subjects.dead("acme", "hook"), names.dead]
      assert.strictEqual(yield* countSince(stream, 0), 0)
      yield* store(own, numbers(300))
      const last = yield* readMessage("read", stream, { seq: 300 })
      const after = (last?.time.getTime() ?? 0) + 1
      yield* eventually(Clock.currentTimeMillis, (now) => now > after)
      yield* store(own, ["300"])
      yield* store(names.subjects.dead("globex", "hook"), ["1", "2"])
      const counts = [
        [0, undefined, 303],
        [0, own, 301],
        [after, undefined, 3],
        [after, own, 1],
        [after, names.subjects.dead("none", "*"), 0],
        [after + 3_600_000, undefined, 0]
      ] as const
      for (const [since, subject, count] of counts)
        assert.strictEqual(yield* countSince(stream, since, subject), count)
    })
  )

  scenario("gives each message the same, however it is read", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const stream = names.dead
      yield* store(names.subjects.dead("acme", "hook"), numbers(3))
      const read = (subjects: ReadonlyArray<string>) =>
        Effect.map(Stream.runCollect(readStream({ stream, subjects })), (found) =>
          found.map((message) => {
            const { data, info, seq, subject, time, timestampNanos } = message
            return {
              data: Buffer.from(data),
              pending: info.pending,
              seq,
              subject,
              time,
              timestampNanos
            }
          })
        )
      const direct = yield* read([names.subjects.dead("acme", "*")])
      const consumed = yield* read([
        names.subjects.dead("acme", "hook"),
        names.subjects.dead("acme", "other")
      ])
      assert.lengthOf(direct, 3)
      assert.deepStrictEqual(direct, consumed)
    })
  )

  scenario("waits for a replica that lags, from a time on, too", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const [subject, stream] = [names.subjects.dead("acme", "hook"), names.dead]
      yield* store(subject, numbers(5))
      let lagging = 2
      const lags = yield* alteredBroker(({ batch, streamInfo }) => ({
        streamInfo: (...what) =>
          Effect.map(streamInfo(...what), (info) => ({
            ...info,
            config: { ...info.config, num_replicas: 3 }
          })),
        batch: (...what) =>
          Effect.map(batch(...what), (all) => (lagging-- > 0 ? all.slice(0, 0) : all))
      }))
      for (const from of [{}, { fromSeq: 3 }, { fromTime: 1 }]) {
        lagging = 2
        const found = yield* readStream({ stream, subjects: [subject], ...from }).pipe(
          Stream.runCollect,
          Effect.provideService(Broker, lags)
        )
        const texts = found.map((message) => message.string())
        assert.deepStrictEqual(texts.toSorted(), numbers(5).slice("fromSeq" in from ? 2 : 0))
      }
    })
  )

  scenario("ends although its end was removed while it was read", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* store(names.subjects.dead("acme", "hook"), numbers(3_000))
      let read = 0
      yield* readStream({ stream: names.dead, subjects: [names.subjects.allDead] }).pipe(
        Stream.runForEach(() =>
          read++ === 0 ? ask("purge", () => jsm.streams.purge(names.dead)) : Effect.void
        )
      )
      assert.isBelow(read, 3_000)
    })
  )

  scenario("leaves no consumer behind", () =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* store(names.subjects.dead("acme", "hook"), numbers(300))
      const reading = readStream({ stream: names.dead, subjects: [names.subjects.allDead] })
      const nothing = readStream({ stream: names.dead, subjects: [names.subjects.dead("x", "y")] })
      yield* Stream.runDrain(reading)
      yield* Stream.runHead(reading)
      yield* Stream.runDrain(nothing)
      yield* eventually(
        ask("look", () => jsm.streams.info(names.dead)),
        ({ state }) => state.consumer_count === 0
      )
    })
  )
})

describe.concurrent("a scan of the rest of a stream", () => {
  const subjectsOf = Effect.map(Broker, ({ names }) => ({
    stream: names.history,
    own: names.subjects.fact("acme", "e", "ok", "delivered"),
    other: names.subjects.fact("globex", "e", "ok", "delivered")
  }))
  const seen = Effect.fnUntraced(function* (fromSeq: number, until?: string) {
    const { own, stream } = yield* subjectsOf
    const bodies: Array<string> = []
    let consumers = 0
    const counted = yield* alteredBroker(({ readRun }) => ({
      readRun: (...what) => {
        consumers++
        return readRun(...what)
      }
    }))
    yield* seeRest({ stream, subject: own, fromSeq }, (message) => {
      assert.strictEqual(message.subject, own)
      bodies.push(message.string())
      return message.string() === until
    }).pipe(Effect.provideService(Broker, counted))
    return { bodies, consumers }
  })

  scenario("needs no consumer for a few messages, and finds all of many once", () =>
    Effect.gen(function* () {
      const { other, own, stream } = yield* subjectsOf
      assert.deepStrictEqual(yield* seen(1), { bodies: [], consumers: 0 })
      yield* store(other, numbers(5))
      const before = yield* endOf(stream)
      for (const body of numbers(3)) yield* store(own, [body])
      yield* store(other, numbers(5))
      assert.deepStrictEqual(yield* seen(1), { bodies: ["0", "1", "2"], consumers: 0 })
      assert.deepStrictEqual((yield* seen(before + 2)).bodies, ["1", "2"])
      assert.deepStrictEqual((yield* seen(before + 100)).bodies, [])
      for (let n = 3; n < 700; n++) yield* store(own, [String(n)])
      assert.deepStrictEqual(yield* seen(1), { bodies: [...numbers(700)], consumers: 1 })
    })
  )

  scenario("ends where it has what it looks for, among the first messages or later", () =>
    Effect.gen(function* () {
      const { own } = yield* subjectsOf
      for (const body of numbers(400)) yield* store(own, [body])
      assert.deepStrictEqual(yield* seen(1, "9"), { bodies: [...numbers(10)], consumers: 0 })
      assert.lengthOf((yield* seen(1, "300")).bodies, 301)
    })
  )

  scenario("leaves bodies out where there are many, if it may", () =>
    Effect.gen(function* () {
      const { own, stream } = yield* subjectsOf
      for (const body of numbers(400)) yield* store(own, [body])
      const bodies: Array<string> = []
      const headersOnly = true
      yield* seeRest({ stream, subject: own, fromSeq: 1, headersOnly }, (message) => {
        bodies.push(message.string())
        return false
      })
      assert.lengthOf(bodies, 400)
      assert.strictEqual(bodies.at(-1), "")
    })
  )
})

describe.concurrent("a reading with several filters", () => {
  scenario("finds the same, whether the broker applies them or the reader", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const { fact } = names.subjects
      const stream = names.history
      // So many subjects that it is faster without the filters.
      for (let n = 0; n < 500; n += 100)
        yield* Effect.forEach(
          Array.from({ length: 100 }, (_, index) => n + index),
          (n) =>
            Effect.all([
              store(fact("acme", `e${n}`, "ok", "delivered"), [`${n}`]),
              store(fact("acme", `e${n}`, "failure", "attempt-failed"), ["failed"]),
              store(fact("acme", "_", "ok", "routed"), [`routed ${n}`])
            ]),
          { concurrency: 16 }
        )
      const subjects = [
        fact("*", "_", "ok", "routed"),
        fact("*", "*", "ok", "delivered"),
        fact("acme", "e1", "failure", "attempt-failed")
      ]
      const wanted = new Set([...numbers(500).flatMap((n) => [n, `routed ${n}`]), "failed"])
      const read = yield* Stream.runCollect(readStream({ stream, subjects }))
      assert.lengthOf(read, 1_001)
      assert.deepStrictEqual(new Set(read.map((message) => message.string())), wanted)

      const seen: Array<string> = []
      yield* seeStream({ stream, subjects }, (message) => {
        seen.push(message.string())
        return seen.length === 900
      })
      assert.deepStrictEqual(
        seen,
        read.slice(0, 900).map((message) => message.string())
      )

      const through: Array<number> = []
      yield* readThrough({ stream, subjects, from: 1, to: yield* endOf(stream) }, ({ seq }) => {
        through.push(seq)
      })
      assert.deepStrictEqual(
        through,
        read.map(({ seq }) => seq)
      )
    })
  )
})
