import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, FiberSet, Stream } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { PublishError } from "../../../src/broker/publication.ts"
import { scanQueue } from "../../../src/broker/scan.ts"
import type { Stored, StoreRequest } from "../../../src/delivery/backlog/backlog-write.ts"
import type { BacklogWriterOptions } from "../../../src/delivery/backlog/backlog-writer.ts"
import { BacklogWriter } from "../../../src/delivery/backlog/backlog-writer.ts"
import { backlogEntriesIn, labelIn, waitingIn } from "../../../src/domain/backlog-message.ts"
import { deliveryHeaders, untried } from "../../../src/domain/delivery.ts"
import { placeName } from "../../../src/domain/fact.ts"
import { alteredBroker } from "../../kit/altered-broker.ts"
import { eventually, nth } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"
import { deliveryOf, key, now } from "../made-deliveries.ts"

const { scenario } = onServer()

/** A delivery of the event with this number, which came through the queue. */
const request = (eventSeq: number, changes: Partial<StoreRequest> & { window?: number } = {}) => {
  const { window = 60_000, ...rest } = changes
  const delivery = deliveryOf({ eventSeq, eventAt: now + eventSeq, deadline: now + window })
  const place = { stream: "QUEUE", seq: 1_000 + eventSeq, at: now }
  return {
    ...{ delivery, place, body: Buffer.from(`${eventSeq}`), progress: untried },
    hasLeft: () => false,
    ...rest
  } satisfies StoreRequest
}

/** A delivery that is stored with its body. */
const copy = (eventSeq: number): StoreRequest => {
  const one = request(eventSeq)
  return { ...one, delivery: { ...one.delivery, type: "copied" } }
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

const makeWriter = Effect.fnUntraced(function* (options: Partial<BacklogWriterOptions> = {}) {
  const said: Array<string> = []
  const run = yield* FiberSet.makeRuntime<never, void, never>()
  const writer = new BacklogWriter(yield* Broker, {
    ...{ index: 0, owner: 1, asReference: ({ type }) => type !== "copied" },
    highestOf: () => 0,
    mayReplace: () => false,
    leftBehind: () => [],
    replacing: () => void said.push("replacing"),
    replaced: (_, seqs) => void said.push(`replaced ${seqs.join()}`),
    kept: () => void said.push("kept"),
    truncated: () => void said.push("truncated"),
    fence: { asOwner: Effect.void },
    wrote: () => undefined,
    run: (work) => void run(work),
    ...options
  })
  const storeAll = (requests: ReadonlyArray<StoreRequest>) =>
    Effect.forEach(requests, (one) => writer.store(one), { concurrency: "unbounded" })
  return { said, storeAll, writer }
})

const subjectOf = ({ names }: Broker["Service"]) => names.subjects.backlog(0, "acme", "hook")

/** What the stream holds: of each message its sequence, the numbers of its events and its label. */
const stored = Effect.gen(function* () {
  const broker = yield* Broker
  const { names } = broker
  const streams = { events: names.events, queue: names.deliveries(0) }
  const messages = yield* Stream.runCollect(scanQueue(names.backlog(0), subjectOf(broker)))
  return [...messages].map(({ data, header, seq, subject }) => {
    const get = (name: string) => header.get(name) || undefined
    const entries = backlogEntriesIn(subject, get, streams) ?? []
    const label = labelIn(get)
    return {
      ...{ seq, label, events: entries.map((entry) => waitingIn(entry).eventSeq) },
      ...{ body: Buffer.from(data).toString(), isCopy: entries[0]?.entry === undefined }
    }
  })
})

const eventsStored = Effect.map(stored, (all) => all.map(({ events }) => events))

/** Checks that each was told where it is. */
const assertPlaces = Effect.fnUntraced(function* (
  requests: ReadonlyArray<StoreRequest>,
  places: ReadonlyArray<Stored>
) {
  const messages = yield* stored
  requests.forEach(({ delivery }, index) => {
    const { after = 0, entry, seq } = places[index] ?? {}
    const message = messages.find((one) => one.seq === seq)
    assert.strictEqual(message?.events[(entry ?? 1) - 1], delivery.eventSeq)
    assert.strictEqual(message?.isCopy, entry === undefined)
    assert.isBelow(after, seq ?? 0)
  })
})

const silent = new PublishError({
  ...{ subject: "backlog", reason: "timeout", code: 0 },
  detail: "no answer"
})

/** A broker whose answers to the first publishes get lost; `before` it stores them or not. */
const deaf = (losses: ReadonlyArray<"stored" | "not stored">) =>
  Effect.gen(function* () {
    const left = [...losses]
    const broker = yield* alteredBroker(({ publish }) => ({
      publish: (...message) => {
        const loss = left.shift()
        if (loss === undefined) return publish(...message)
        const sent = loss === "stored" ? publish(...message) : Effect.void
        return Effect.andThen(sent, Effect.fail(silent))
      }
    }))
    return { broker, left }
  })

const within = (broker: Broker["Service"]) => Effect.provideService(Broker, broker)

describe.concurrent("writing a backlog", () => {
  scenario("stores what comes together in few messages, in order", () =>
    Effect.gen(function* () {
      const { storeAll } = yield* makeWriter()
      const requests = numbers(1, 600).map((n) => request(n))
      const places = yield* storeAll(requests)
      yield* assertPlaces(requests, places)
      const messages = yield* stored
      assert.deepStrictEqual(
        messages.flatMap(({ events }) => events),
        numbers(1, 600)
      )
      assert.isAtMost(messages.length, 12)
      assert.isAtMost(Math.max(...messages.map(({ events }) => events.length)), 256)
      const counts = messages.map(({ label }) => label?.stored)
      assert.strictEqual(counts.at(-1), 600)
      assert.strictEqual(counts[0], messages[0]?.events.length)
      assert.isTrue(messages.every(({ label }) => label?.owner === 1))
    })
  )

  scenario("tells where a message got a sequence that reading has passed", () =>
    Effect.gen(function* () {
      const { storeAll } = yield* makeWriter({ highestOf: () => 3 })
      const [place] = yield* storeAll([request(1)])
      assert.deepStrictEqual([place?.seq, place?.after], [1, 3])
    })
  )

  scenario("keeps deliveries of different windows in different messages", () =>
    Effect.gen(function* () {
      const { storeAll } = yield* makeWriter()
      const requests = numbers(1, 40).map((n) => request(n, { window: 60_000 * (1 + (n % 2)) }))
      yield* assertPlaces(requests, yield* storeAll(requests))
      const events = yield* eventsStored
      assert.isAtMost(events.length, 4)
      for (const list of events) {
        assert.lengthOf(new Set(list.map((n) => n % 2)), 1)
        assert.deepStrictEqual(
          list,
          [...list].sort((one, other) => one - other)
        )
      }
    })
  )

  scenario("stores a delivery with its body between references", () =>
    Effect.gen(function* () {
      const { storeAll } = yield* makeWriter()
      const requests = [request(1), request(2), copy(3), request(4)]
      yield* assertPlaces(requests, yield* storeAll(requests))
      const messages = yield* stored
      assert.deepStrictEqual(
        messages.flatMap(({ events }) => events),
        [1, 2, 3, 4]
      )
      assert.deepStrictEqual(
        messages.filter(({ isCopy }) => isCopy).map(({ body, label }) => [body, label?.stored]),
        [["3", 3]]
      )
    })
  )

  scenario("counts on from what former owners have stored, also without counting", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const { delivery } = copy(1)
      for (const n of [1, 2])
        yield* broker.publish(subjectOf(broker), "x", deliveryHeaders(delivery, `old${n}`))
      const first = yield* makeWriter()
      yield* first.storeAll([request(3)])
      const second = yield* makeWriter({ owner: 2 })
      yield* second.storeAll([request(4), request(5)])
      assert.deepStrictEqual(
        (yield* stored).map(({ label }) => label?.stored),
        [undefined, undefined, 3, 5]
      )
    })
  )

  scenario(
    "goes on where a former owner has written since, and relies on nothing of that one",
    () =>
      Effect.gen(function* () {
        const former = yield* makeWriter()
        const { storeAll, writer } = yield* makeWriter({ owner: 2 })
        writer.opened(key, 0)
        const taken = [request(1), request(2)]
        yield* former.storeAll(taken)
        const requests = [request(3), ...taken]
        const places = yield* storeAll(requests)
        yield* assertPlaces(requests, places)
        assert.deepStrictEqual(yield* eventsStored, [
          [1, 2],
          [3, 1, 2]
        ])
      })
  )

  scenario("has a late write of a former owner refused, once it has written itself", () =>
    Effect.gen(function* () {
      const frozen = yield* Deferred.make<void>()
      const reached = yield* Deferred.make<void>()
      const freezing = yield* alteredBroker(({ publish }) => ({
        publish: (...message) =>
          Effect.andThen(
            Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(frozen)),
            publish(...message)
          )
      }))
      const former = yield* within(freezing)(makeWriter())
      former.writer.opened(key, 0)
      const late = yield* Effect.forkChild(former.storeAll([request(1), request(2)]))
      yield* Deferred.await(reached)
      const { storeAll } = yield* makeWriter({ owner: 2 })
      yield* storeAll([request(1)])
      yield* Deferred.succeed(frozen, undefined)
      const places = yield* Fiber.join(late)
      // It relies on its own messages only: an owner that was replaced is stopped elsewhere.
      yield* assertPlaces([request(1), request(2)], places)
      assert.deepStrictEqual(yield* eventsStored, [[1], [1, 2]])
    })
  )
})

describe.concurrent("a write that was not answered", () => {
  scenario("is found before it is repeated, and stored once", () =>
    Effect.gen(function* () {
      const { broker } = yield* deaf(["stored"])
      const { storeAll, writer } = yield* within(broker)(makeWriter())
      const requests = numbers(1, 3).map((n) => request(n))
      assert.deepStrictEqual(yield* Effect.flip(storeAll(requests)), silent)
      assert.isTrue(writer.isUnsure(key))
      yield* assertPlaces(requests, yield* storeAll(requests))
      assert.isFalse(writer.isUnsure(key))
      assert.isTrue(writer.isIdle)
      assert.lengthOf((yield* eventsStored).flat(), 3)
    })
  )

  scenario("is settled while nobody asks, and tells it to who asks later", () =>
    Effect.gen(function* () {
      const { broker } = yield* deaf(["stored"])
      const { storeAll, writer } = yield* within(broker)(makeWriter())
      const requests = [request(1)]
      const read = { ...nth(requests, 0).delivery, origin: placeName(nth(requests, 0).place) }
      const standings = () =>
        [read, { ...read, progress: { attempts: 1 } }, { ...read, eventSeq: 2 }].map((one) =>
          writer.standing(one)
        )
      assert.deepStrictEqual(standings(), [undefined, undefined, undefined])
      yield* Effect.flip(storeAll(requests))
      assert.deepStrictEqual(standings(), ["storing", "storing", undefined])
      yield* eventually(
        Effect.sync(() => writer.isUnsure(key)),
        (isUnsure) => !isUnsure
      )
      assert.isFalse(writer.isIdle)
      assert.deepStrictEqual(standings(), ["stored", "stored", undefined])
      yield* assertPlaces(requests, yield* storeAll(requests))
      assert.isTrue(writer.isIdle)
      assert.deepStrictEqual(standings(), [undefined, undefined, undefined])
      assert.deepStrictEqual(yield* eventsStored, [[1]])
    })
  )

  scenario("is repeated where it was not stored, with what came meanwhile after it", () =>
    Effect.gen(function* () {
      const { broker } = yield* deaf(["not stored"])
      const { storeAll } = yield* within(broker)(makeWriter())
      yield* Effect.flip(storeAll([request(1), request(2)]))
      const requests = [request(1), request(2), request(3)]
      yield* assertPlaces(requests, yield* storeAll(requests))
      assert.deepStrictEqual(yield* eventsStored, [[1, 2], [3]])
    })
  )

  scenario("is not repeated for what has left the backlog meanwhile", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const { broker: silenced } = yield* deaf(["stored"])
      const { storeAll, writer } = yield* within(silenced)(makeWriter())
      writer.opened(key, 0)
      let hasLeft = false
      const requests = numbers(1, 2).map((n) => request(n, { hasLeft: () => hasLeft }))
      yield* Effect.flip(storeAll(requests))
      hasLeft = true
      const { names } = broker
      yield* broker.purge("purge", names.backlog(0), { filter: subjectOf(broker), seq: 100 })
      writer.purged(key, 100)
      for (const place of yield* storeAll(requests)) assert.strictEqual(place.seq, 0)
      yield* eventually(
        Effect.sync(() => writer.isUnsure(key)),
        (isUnsure) => !isUnsure
      )
      assert.deepStrictEqual(yield* eventsStored, [])
      yield* storeAll([request(3)])
      assert.deepStrictEqual(yield* eventsStored, [[3]])
    })
  )

  scenario("is not taken a second time where it arrives late, after a purge", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      let late: Effect.Effect<unknown, PublishError> | undefined
      const delaying = yield* alteredBroker(({ publish }) => ({
        publish: (...message) => {
          if (late !== undefined) return publish(...message)
          late = publish(...message)
          return Effect.fail(silent)
        }
      }))
      const { storeAll, writer } = yield* within(delaying)(makeWriter())
      writer.opened(key, 0)
      yield* Effect.flip(storeAll([request(1)]))
      const [place] = yield* storeAll([request(1)])
      assert.strictEqual(place?.after, 0)
      const below = (place?.seq ?? 0) + 1
      yield* broker.purge("purge", broker.names.backlog(0), {
        filter: subjectOf(broker),
        seq: below
      })
      writer.purged(key, below)
      yield* late ?? Effect.void
      assert.deepStrictEqual(yield* eventsStored, [])
    })
  )

  scenario("holds up no other endpoint", () =>
    Effect.gen(function* () {
      const broker = yield* alteredBroker(({ publish }) => ({
        publish: (subject, ...rest) =>
          subject.endsWith(".hook") ? Effect.never : publish(subject, ...rest)
      }))
      const { storeAll } = yield* within(broker)(makeWriter())
      const stuck = yield* Effect.forkChild(storeAll([request(1)]))
      const one = request(1)
      const delivery = { ...one.delivery, endpoint: "other" }
      const [place] = yield* storeAll([{ ...one, delivery }])
      assert.isAbove(place?.seq ?? 0, 0)
      yield* Fiber.interrupt(stuck)
    })
  )
})

describe.concurrent("a caller that stops waiting", () => {
  scenario("takes its request back where that was not sent, and no other", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const reached = yield* Deferred.make<void>()
      const slow = yield* alteredBroker(({ publish }) => ({
        publish: (...message) =>
          Effect.andThen(
            Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(go)),
            publish(...message)
          )
      }))
      const { storeAll, writer } = yield* within(slow)(makeWriter())
      const sent = yield* Effect.forkChild(writer.store(request(1)))
      yield* Deferred.await(reached)
      const fibers = yield* Effect.forEach([2, 3, 4], (n) =>
        Effect.forkChild(writer.store(request(n)), { startImmediately: true })
      )
      for (const fiber of [sent, ...fibers.slice(1, 2)]) yield* Fiber.interrupt(fiber)
      yield* Deferred.succeed(go, undefined)
      for (const fiber of [...fibers.slice(0, 1), ...fibers.slice(2)]) yield* Fiber.join(fiber)
      assert.deepStrictEqual((yield* eventsStored).flat(), [1, 2, 4])
      const again = [request(1), request(3)]
      yield* assertPlaces(again, yield* storeAll(again))
      assert.deepStrictEqual((yield* eventsStored).flat(), [1, 2, 4, 3])
    })
  )
})

describe.concurrent("what the broker refuses", () => {
  scenario("for lack of space fails all that would be stored together, and may be repeated", () =>
    Effect.gen(function* () {
      const full = new PublishError({
        ...{ subject: "backlog", reason: "rejected", code: 10077 },
        detail: "maximum bytes exceeded"
      })
      let isFull = true
      const broker = yield* alteredBroker(({ publish }) => ({
        publish: (...message) => (isFull ? Effect.fail(full) : publish(...message))
      }))
      const { storeAll, writer } = yield* within(broker)(makeWriter())
      const requests = [request(1), request(2)]
      const failures = yield* Effect.forEach(requests, (one) => Effect.flip(writer.store(one)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(failures, [full, full])
      assert.isFalse(writer.isUnsure(key))
      assert.isTrue(writer.isIdle)
      isFull = false
      yield* assertPlaces(requests, yield* storeAll(requests))
    })
  )

  scenario("for its size is divided, and only what is too large alone fails", () =>
    Effect.gen(function* () {
      const text = "x".repeat(70_000)
      const big = request(3, { progress: { attempts: 1, lastError: text } })
      const middling = numbers(4, 9).map((n) =>
        request(n, { progress: { attempts: 1, lastError: text.slice(0, 20_000) } })
      )
      const { writer } = yield* makeWriter()
      const requests = [request(1), request(2), big, ...middling]
      const results = yield* Effect.forEach(requests, (one) => Effect.result(writer.store(one)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(
        results.map(({ _tag }) => _tag === "Success"),
        requests.map((one) => one !== big)
      )
      assert.deepStrictEqual((yield* eventsStored).flat(), [1, 2, 4, 5, 6, 7, 8, 9])
    })
  )
})

/** So many small messages of the first endpoint are written again as one, with what comes next. */
const row = 4

/** Stores each delivery in a message of its own. */
const storeApart = Effect.fnUntraced(function* (
  { storeAll }: { readonly storeAll: Effect.Success<ReturnType<typeof makeWriter>>["storeAll"] },
  events: ReadonlyArray<number>
) {
  const places = yield* Effect.forEach(events, (n) => storeAll([request(n)]))
  return places.flat()
})

/** The sequences of messages that were replaced, as they are told. */
const inText = (from: number, to: number) => numbers(from, to).join()

/** A broker that never answers where a message of the backlog is to go. */
const lasting = alteredBroker(({ deleteMessage, names, purge }) => ({
  deleteMessage: (operation, stream, seq) =>
    stream === names.backlog(0) ? Effect.never : deleteMessage(operation, stream, seq),
  purge: (operation, stream, limits) =>
    stream === names.backlog(0) ? Effect.never : purge(operation, stream, limits)
}))

describe.concurrent("small messages at the end", () => {
  scenario("are written again as one, and purged by one request where they are alone", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const broker = yield* alteredBroker(({ deleteMessage, purge, readMessage }) => ({
        readMessage: (operation, ...rest) => {
          asked.push(operation)
          return readMessage(operation, ...rest)
        },
        deleteMessage: (operation, ...rest) => {
          asked.push(operation)
          return deleteMessage(operation, ...rest)
        },
        purge: (operation, ...rest) => {
          asked.push(operation)
          return purge(operation, ...rest)
        }
      }))
      const { said, storeAll } = yield* within(broker)(makeWriter({ mayReplace: () => true }))
      const places = yield* storeApart({ storeAll }, numbers(1, row))
      assert.lengthOf(yield* eventsStored, row)
      places.push(...(yield* storeApart({ storeAll }, [row + 1])))
      yield* eventually(eventsStored, (events) => events.length === 1)
      assert.deepStrictEqual(yield* eventsStored, [numbers(1, row + 1)])
      assert.deepStrictEqual(
        places.map(({ entry }) => entry),
        [...numbers(1, row).map(() => 1), row + 1]
      )
      assert.deepStrictEqual(said, ["replacing", `replaced ${inText(1, row)}`])
      assert.deepStrictEqual(asked, [
        "look at the end of a backlog",
        "look at what was stored again",
        "purge what was stored again"
      ])
    })
  )

  scenario("are written again and again until they hold much, each of them alone", () =>
    Effect.gen(function* () {
      const { storeAll } = yield* makeWriter({ mayReplace: () => true })
      yield* storeApart({ storeAll }, numbers(1, 80))
      // What follows is held anew, and written again where there are twelve at the latest.
      yield* eventually(eventsStored, (events) => events.length <= 12)
      const messages = yield* stored
      assert.deepStrictEqual(
        messages.flatMap(({ events }) => events),
        numbers(1, 80)
      )
      assert.isAtLeast(messages[0]?.events.length ?? 0, 64)
      assert.strictEqual(messages.at(-1)?.label?.stored, 80)
    })
  )

  scenario("are written again before there are many where they hold much", () =>
    Effect.gen(function* () {
      const { said, storeAll } = yield* makeWriter({ mayReplace: () => true })
      yield* storeAll(numbers(1, 40).map((n) => request(n)))
      yield* storeAll(numbers(41, 70).map((n) => request(n)))
      const before = yield* eventsStored
      assert.isAtMost(before.length, row - 1)
      yield* storeAll([request(71)])
      yield* eventually(eventsStored, (events) => events.length === 1)
      assert.deepStrictEqual(yield* eventsStored, [numbers(1, 71)])
      assert.deepStrictEqual(said, ["replacing", `replaced ${inText(1, before.length)}`])
    })
  )

  scenario("take no other message with them as they are replaced", () =>
    Effect.gen(function* () {
      const { said, storeAll } = yield* makeWriter({ mayReplace: () => true })
      yield* storeAll([copy(0)])
      yield* storeApart({ storeAll }, numbers(1, row + 1))
      yield* eventually(eventsStored, (events) => events.length === 2)
      assert.deepStrictEqual(yield* eventsStored, [[0], numbers(1, row + 1)])
      assert.deepStrictEqual(said, ["replacing", `replaced ${inText(2, row + 1)}`])
    })
  )

  scenario("are left alone where reading has reached them, or their windows are others", () =>
    Effect.gen(function* () {
      let read = 0
      const { said, storeAll } = yield* makeWriter({ mayReplace: (_, from) => from > read })
      yield* storeAll([request(0, { window: 90_000 })])
      yield* storeApart({ storeAll }, numbers(1, row))
      read = 2
      yield* storeApart({ storeAll }, [row + 1])
      assert.deepStrictEqual(
        yield* eventsStored,
        numbers(0, row + 1).map((n) => [n])
      )
      assert.deepStrictEqual(said, [])
      yield* storeApart({ storeAll }, numbers(row + 2, 2 * row + 1))
      yield* eventually(eventsStored, (events) => events.length === row + 2)
      assert.deepStrictEqual((yield* eventsStored).at(-1), numbers(row + 1, 2 * row + 1))
    })
  )

  scenario("stay where the stream has another message in the place of what holds them", () =>
    Effect.gen(function* () {
      let isAsked = false
      const broker = yield* alteredBroker(({ purge, readMessage }) => ({
        readMessage: (operation, ...rest) =>
          Effect.map(readMessage(operation, ...rest), (message) => {
            if (operation !== "look at what was stored again") return message
            isAsked = true
            message?.header.set("petrel-entries", "1 other")
            return message
          }),
        purge: (operation, stream, limits) =>
          isAsked ? Effect.die("purged") : purge(operation, stream, limits)
      }))
      const { storeAll } = yield* within(broker)(makeWriter({ mayReplace: () => true }))
      yield* storeApart({ storeAll }, numbers(1, row + 1))
      yield* eventually(
        Effect.sync(() => isAsked),
        (isAsked) => isAsked
      )
      yield* storeApart({ storeAll }, [row + 2])
      assert.lengthOf(yield* eventsStored, row + 2)
    })
  )

  scenario("are kept where the message that would replace them is not stored", () =>
    Effect.gen(function* () {
      const full = new PublishError({
        ...{ subject: "backlog", reason: "rejected", code: 10077 },
        detail: "maximum bytes exceeded"
      })
      let isFull = false
      const broker = yield* alteredBroker(({ publish }) => ({
        publish: (...message) => (isFull ? Effect.fail(full) : publish(...message))
      }))
      const { said, storeAll } = yield* within(broker)(makeWriter({ mayReplace: () => true }))
      yield* storeApart({ storeAll }, numbers(1, row))
      isFull = true
      yield* Effect.flip(storeAll([request(row + 1)]))
      assert.deepStrictEqual(said, ["replacing", "kept"])
      isFull = false
      yield* storeAll([request(row + 1)])
      assert.deepStrictEqual(
        yield* eventsStored,
        numbers(1, row + 1).map((n) => [n])
      )
    })
  )

  scenario("are replaced where the answer got lost, and the other is there", () =>
    Effect.gen(function* () {
      const { broker, left } = yield* deaf([])
      const { said, storeAll } = yield* within(broker)(makeWriter({ mayReplace: () => true }))
      yield* storeApart({ storeAll }, numbers(1, row))
      left.push("stored")
      yield* Effect.flip(storeAll([request(row + 1)]))
      const [last] = yield* storeAll([request(row + 1)])
      assert.strictEqual(last?.entry, row + 1)
      assert.deepStrictEqual(said, ["replacing", `replaced ${inText(1, row)}`])
      yield* eventually(eventsStored, (events) => events.length === 1)
      assert.deepStrictEqual(yield* eventsStored, [numbers(1, row + 1)])
    })
  )

  scenario("tell that the stream was truncated where they are gone, and nothing holds them", () =>
    Effect.gen(function* () {
      const { broker, left } = yield* deaf([])
      const { said, storeAll } = yield* within(broker)(makeWriter({ mayReplace: () => true }))
      yield* storeApart({ storeAll }, numbers(1, row))
      left.push("stored")
      yield* Effect.flip(storeAll([request(row + 1)]))
      const { deleteMessage, names } = yield* Broker
      for (const seq of [row, row + 1])
        yield* deleteMessage("as a power cut", names.backlog(0), seq)
      yield* storeAll([request(row + 1)])
      assert.deepStrictEqual(said, ["replacing", "truncated", "kept"])
    })
  )

  scenario("are named by their successors until they are removed, also after a crash", () =>
    Effect.gen(function* () {
      const crashed = yield* within(yield* lasting)(makeWriter({ mayReplace: () => true }))
      yield* storeApart(crashed, numbers(1, row + 1))
      const { storeAll } = yield* makeWriter({ owner: 2, mayReplace: () => true })
      const [next] = yield* storeAll([request(row + 2)])
      assert.strictEqual(next?.entry, 1)
      assert.deepStrictEqual(
        (yield* stored).slice(row).map(({ events, label }) => [events, label]),
        [
          [numbers(1, row + 1), { stored: row + 1, owner: 1, replaces: numbers(1, row) }],
          [[row + 2], { stored: row + 2, owner: 2, replaces: [] }]
        ]
      )
    })
  )

  scenario("are removed by the next owner before it writes, where the owner crashed", () =>
    Effect.gen(function* () {
      const crashed = yield* within(yield* lasting)(makeWriter({ mayReplace: () => true }))
      yield* crashed.storeAll([request(0, { window: 90_000 })])
      yield* storeApart(crashed, numbers(1, row + 1))
      const { storeAll } = yield* makeWriter({
        owner: 2,
        leftBehind: (_key, { label }) => label?.replaces ?? []
      })
      yield* storeAll([request(row + 2)])
      assert.deepStrictEqual(yield* eventsStored, [[0], numbers(1, row + 1), [row + 2]])
    })
  )
})
