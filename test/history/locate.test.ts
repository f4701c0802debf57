import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { removeIf } from "../../src/broker/removal.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { Facts } from "../../src/history/facts.ts"
import type { LocateQuery, Sighting, Whereabouts } from "../../src/history/locate.ts"
import { locate, roundKeyOf } from "../../src/history/locate.ts"
import { delivery, hour, now, put, tried } from "../delivery/waiting-before.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()
const partitions = 2
const [hook, other] = ["hook-0", "hook-1"]
const everywhere: ReadonlyArray<Whereabouts> = ["queue", "schedules", "backlog", "history"]
const named = (endpoint: string) => ({ tenant: "acme", endpoint })

/** Where each of the endpoint's deliveries is found, by its event's sequence. */
const whereabouts = Effect.fnUntraced(function* (
  changes: Partial<LocateQuery> = {},
  isEnough: (sighting: Sighting) => boolean = () => false
) {
  const found: Array<string> = []
  const search: LocateQuery = {
    within: { partitions },
    endpoints: [named(hook)],
    places: everywhere,
    ...changes
  }
  yield* locate(search, (sighting) => {
    found.push(`${sighting.where} ${sighting.endpoint} ${sighting.event.split("@")[0]}`)
    return isEnough(sighting)
  })
  return found
})

const append = (endpoint: string, eventSeq: number, changes: Partial<Fact> = {}) =>
  Effect.flatMap(Facts, (facts) =>
    facts.append(
      {
        ...{ v: 1, kind: "delivered", at: now, tenant: "acme", endpoint },
        ...{ eventSeq, eventAt: now, round: "0", attempt: 1 },
        ...changes
      },
      `${endpoint}.${eventSeq}.${changes.kind}`
    )
  )

/** One delivery of each endpoint in each place. */
const inEachPlace = Effect.gen(function* () {
  for (const endpoint of [hook, other]) {
    yield* put("deliveries", delivery(endpoint, 1), undefined, partitions)
    yield* put("deliveries", delivery(endpoint, 2, tried(now + hour)), now + hour, partitions)
    yield* put("backlog", delivery(endpoint, 3), undefined, partitions)
    yield* append(endpoint, 4)
    yield* append(endpoint, 5, { kind: "attempt-failed" })
    yield* append(endpoint, 6, { kind: "missing" })
  }
})

describe.concurrent("where a delivery is", () => {
  scenario("is found in each place, and nothing of other endpoints", () =>
    Effect.gen(function* () {
      yield* inEachPlace
      assert.deepStrictEqual(yield* whereabouts(), [
        `queue ${hook} 1`,
        `schedules ${hook} 2`,
        `backlog ${hook} 3`,
        `history ${hook} 4`,
        `history ${hook} 5`
      ])
    })
  )

  scenario("is found where its message takes the place of another one during the reading", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const stream = broker.names.backlog(partitionOf("acme", hook, partitions))
      yield* put("backlog", delivery(hook, 3), undefined, partitions)
      const places: ReadonlyArray<Whereabouts> = ["backlog"]
      const services = yield* Effect.context<Broker>()
      let readings = 0
      const replaced = Effect.gen(function* () {
        yield* put("backlog", delivery(hook, 7), undefined, partitions)
        yield* removeIf("replace it", stream, 1, () => true)
      })
      // The first reading comes to where it was, and not to what was stored since it began.
      const see: (typeof broker)["see"] = (...args) =>
        ++readings === 1
          ? Effect.as(Effect.provideContext(Effect.orDie(replaced), services), {
              seq: 1,
              enough: false
            })
          : broker.see(...args)
      const found = yield* Effect.provideService(whereabouts({ places }), Broker, {
        ...broker,
        see
      })
      assert.deepStrictEqual(found, [`backlog ${hook} 7`])
    })
  )

  scenario("is looked for in the order that was asked for, up to what is enough", () =>
    Effect.gen(function* () {
      yield* inEachPlace
      const places: ReadonlyArray<Whereabouts> = ["backlog", "queue", "history"]
      assert.deepStrictEqual(yield* whereabouts({ places }, ({ where }) => where === "queue"), [
        `backlog ${hook} 3`,
        `queue ${hook} 1`
      ])
    })
  )

  scenario("is told of the wanted events only, and of what was stored since", () =>
    Effect.gen(function* () {
      yield* inEachPlace
      const places: ReadonlyArray<Whereabouts> = ["history"]
      assert.deepStrictEqual(
        yield* whereabouts({ places, isWanted: (eventSeq) => eventSeq === 5 }),
        [`history ${hook} 5`]
      )
      const { seq } = yield* append(hook, 7)
      assert.deepStrictEqual(yield* whereabouts({ places, historySince: { fromSeq: seq } }), [
        `history ${hook} 7`
      ])
    })
  )

  scenario("is found for many endpoints by reading streams whole", () =>
    Effect.gen(function* () {
      yield* inEachPlace
      const absent = Array.from({ length: 20 }, (_, index) => named(`absent-${index}`))
      const found = yield* whereabouts({ endpoints: [...absent, named(hook)] })
      assert.deepStrictEqual(found, yield* whereabouts())
    })
  )

  scenario("is found for all endpoints of a partition", () =>
    Effect.gen(function* () {
      yield* inEachPlace
      const partition = partitionOf("acme", hook, partitions)
      const found = yield* whereabouts({ within: { partition }, endpoints: "all" })
      assert.includeMembers(
        found,
        yield* whereabouts({ places: ["queue", "schedules", "backlog"] })
      )
    })
  )

  scenario("is not missed though it moves from the queue to the backlog meanwhile", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      const partition = partitionOf("acme", hook, partitions)
      yield* put("deliveries", delivery(hook, 1), undefined, partitions)
      const isQueue = (subject: string) =>
        subject === broker.names.subjects.delivery(partition, "acme", hook)
      const context = yield* Effect.context<Broker>()
      const moving: Broker["Service"] = {
        ...broker,
        batch: (stream, subject, ...rest) =>
          isQueue(subject)
            ? Effect.gen(function* () {
                yield* put("backlog", delivery(hook, 1), undefined, partitions)
                yield* broker.deleteMessage("move", stream, 1)
                return yield* broker.batch(stream, subject, ...rest)
              }).pipe(Effect.orDie, Effect.provideContext(context))
            : broker.batch(stream, subject, ...rest)
      }
      const found: Array<string> = []
      yield* Effect.provideService(
        locate(
          { within: { partitions }, endpoints: [named(hook)], places: everywhere },
          (sighting) => {
            found.push(`${sighting.where} ${roundKeyOf(sighting)}`)
            return false
          }
        ),
        Broker,
        moving
      )
      assert.deepStrictEqual(found, [`backlog 1@${now}.0`])
    })
  )
})
