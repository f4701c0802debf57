import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { disableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { changeEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { allFacts, consistentRounds, noRecords, quiet } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, eventually, nth, publish, queued, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { longScenario, scenario } = onServer()

/** Another worker takes over, brings everything to its end, and stops. */
const takeOver = Effect.gen(function* () {
  const second = yield* worker({ id: "second" })
  yield* quiet
  yield* second.stop
  yield* noRecords
})

const endpoints = (url: string, ids: ReadonlyArray<string>) =>
  Effect.forEach(ids, (id) => endpoint({ id, url: `${url}/${id}` }), {
    concurrency: 32,
    discard: true
  })

const steps: ReadonlyArray<readonly [name: string, step: FailpointName, arrival: number]> = [
  ["its plan is stored", "plan-stored", 1],
  ["one of its deliveries is stored", "delivery-stored", 1],
  ["two of its deliveries are stored", "delivery-stored", 2],
  ["all of its deliveries are stored", "event-routed", 1]
]

/** The others differ in a step or in numbers only. */
const few = ["its plan is stored", "one of its deliveries is stored"]

describe.concurrent("an event whose router dies", () => {
  for (const [name, step, arrival] of steps) {
    const story = (place: Installation) =>
      Effect.gen(function* () {
        const { requests, url } = yield* receiver()
        yield* endpoints(url, ["a", "b", "c"])
        yield* publish("invoice.paid")
        yield* crashAt(place, step, arrival)
        yield* takeOver
        const accounts = yield* consistentRounds
        assert.deepStrictEqual(
          accounts.map((account) => [account.endpoint, account.ends[0]?.kind]),
          [
            ["a", "delivered"],
            ["b", "delivered"],
            ["c", "delivered"]
          ]
        )
        assert.deepStrictEqual(requests.map(({ path }) => path).sort(), ["/a", "/b", "/c"])
      })
    const tell = few.includes(name) ? scenario : longScenario
    tell(`when ${name} goes to each of its endpoints once`, story)
    tell(
      `when ${name} does so too when the broker has forgotten what it stored`,
      story,
      // Over long before the event is redelivered, after its ack_wait.
      { moveDedupe: 200 }
    )
  }

  scenario("goes where its stored plan says, whatever has changed since", (place) =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver()
      yield* endpoints(url, ["disabled", "other-types", "removed", "unchanged"])
      yield* publish("invoice.paid")
      yield* crashAt(place, "delivery-stored", 1)
      yield* endpoints(url, ["added"])
      yield* disableEndpoint({ tenant: "acme", endpoint: "disabled" }, "a test", "test")
      yield* removeEndpoint("acme", "removed")
      yield* changeEndpoint("acme", "other-types", (config) =>
        Effect.succeed({ ...config, types: ["order.*"] })
      )
      yield* takeOver
      const accounts = yield* consistentRounds
      assert.deepStrictEqual(
        accounts.map(({ endpoint, ends: [end] }) => [endpoint, end?.reason ?? end?.kind]),
        [
          ["disabled", "endpoint-disabled"],
          ["other-types", "delivered"],
          ["removed", "endpoint-removed"],
          ["unchanged", "delivered"]
        ]
      )
      assert.deepStrictEqual(requests.map(({ path }) => path).sort(), [
        "/other-types",
        "/unchanged"
      ])
    })
  )

  const wide = Array.from({ length: 2_500 }, (_, index) => `e${String(index).padStart(4, "0")}`)

  longScenario("between the parts of a wide plan goes to each of its endpoints once", (place) =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      yield* endpoints("http://127.0.0.1:9", wide)
      yield* publish("invoice.paid")
      yield* crashAt(place, "plan-stored", 2, { roles: ["router"] })
      yield* endpoints("http://127.0.0.1:9", ["e0500-too-late", "e2400-in-time"])
      yield* removeEndpoint("acme", "e2499")
      const second = yield* worker({ id: "second", roles: ["router"] })
      yield* eventually(
        ask("look at the router", () => jsm.consumers.info(names.events, names.routerConsumer)),
        ({ ack_floor }) => ack_floor.stream_seq === 1
      )
      yield* second.stop
      const parts = (yield* allFacts).flatMap(({ plan }) => (plan === undefined ? [] : [plan]))
      assert.deepStrictEqual(
        parts.map(({ endpoints, last, part }) => [part, endpoints.length, last]),
        [
          [0, 1_000, false],
          [1, 1_000, false],
          [2, 500, true]
        ]
      )
      const expected = [...wide.slice(0, -1), "e2400-in-time"].sort()
      const found = yield* Effect.forEach([0, 1], (partition) =>
        queued(partition, names.subjects.deliveriesOf(partition))
      )
      const to = found.flat().map(({ subject }) => nth(subject.split("."), 4))
      assert.deepStrictEqual(to.sort(), expected)
      assert.isTrue(expected.every((id) => to.includes(id) && partitionOf("acme", id, 2) < 2))
    })
  )
})
