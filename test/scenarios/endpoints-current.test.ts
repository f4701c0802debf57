import { assert, describe } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import type { Watch } from "../../src/broker/broker.ts"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { readLayout } from "../../src/broker/installed.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { Directory } from "../../src/endpoints/directory.ts"
import { runRouter } from "../../src/routing/run-routers.ts"
import { makeGates } from "../../src/worker/node.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import {
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  startedWorker
} from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { onServer } from "../kit/scenario.ts"
import { tcpProxy } from "../kit/tcp-proxy.ts"

const { scenario } = onServer()

/** Who gets the event of each plan, in the order of the history. */
const planned = (plans: ReadonlyArray<Fact>) =>
  plans.map(({ plan }) => plan?.endpoints.map(({ id }) => id))

/** A broker whose watches of buckets that are begun from `hold` on show nothing until `release`. */
const holding = Effect.gen(function* () {
  let released: Promise<void> = Promise.resolve()
  let release = () => {}
  const late = (watch: Watch): Watch => {
    const before = released
    const entries = async function* () {
      await before
      yield* watch
    }
    return Object.assign(entries(), { stop: () => watch.stop() })
  }
  return {
    service: yield* alteredBroker(({ watch }) => ({
      watch: (name) => Effect.map(watch(name), late)
    })),
    hold: () => {
      released = new Promise((resolve) => {
        release = resolve
      })
    },
    release: () => release()
  }
})

describe.concurrent("an event that comes when the router has its connection back", () => {
  scenario("waits until the endpoints have been read again", (place, server) =>
    Effect.gen(function* () {
      const proxy = yield* tcpProxy(server.port)
      const url = `nats://127.0.0.1:${proxy.port}`
      const own = yield* Layer.build(connectTo({ ...place, url }))
      const { hold, release, service } = yield* Effect.provideContext(holding, own)
      const log = makeLog()
      const facts = yield* history
      yield* endpoint({ id: "before" })
      yield* startedWorker({ roles: ["router"] }).pipe(
        Effect.provideService(Broker, service),
        Effect.provide(log.layer)
      )
      yield* publish("first")
      yield* facts.planned(1)
      hold()
      yield* proxy.cut
      yield* endpoint({ id: "meanwhile" })
      yield* publishMany(3, "second")
      const back = yield* Deferred.make<void>()
      const forget = service.onReconnect(() => Deferred.doneUnsafe(back, Effect.void))
      yield* proxy.join
      yield* Deferred.await(back)
      forget()
      const waits = "routing waits until the endpoints"
      yield* eventually(
        Effect.sync(() => facts.plans().length > 1 || log.count(waits) > 0),
        (seen) => seen
      )
      assert.deepStrictEqual(planned(facts.plans()), [["before"]])
      release()
      yield* facts.planned(4)
      const all = ["before", "meanwhile"]
      assert.deepStrictEqual(planned(facts.plans()), [["before"], all, all, all])
      assert.strictEqual(log.count(waits), 1)
      assert.strictEqual(log.count("routing continues"), 1)
    })
  )
})

/** What the broker has handed out to the router, and the requests for more that are open. */
const deliveryCount = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const info = yield* ask("look", () => jsm.consumers.info(names.events, names.routerConsumer))
  return { prefetch: info.num_ack_pending, waiting: info.num_pending, requests: info.num_waiting }
})

/** A router of its own, by a directory that is current when it is told so. */
const routerBy = Effect.fnUntraced(function* () {
  const real = Context.get(yield* Layer.build(Directory.layer), Directory)
  let isCurrent = true
  let stopping = false
  const directory = Directory.of({
    ...real,
    isCurrent: () => isCurrent,
    current: eventually(
      Effect.sync(() => isCurrent),
      (current) => current
    ).pipe(Effect.asVoid)
  })
  const router = yield* runRouter({
    worker: "w1",
    layout: yield* readLayout,
    prefetchBytes: 1_000_000,
    directBytes: 0,
    gates: makeGates(),
    owned: { attempt: () => false, storeInBacklog: () => false },
    stopping: () => stopping,
    isClockTrusted: () => true
  }).pipe(Effect.scoped, Effect.provideService(Directory, directory), Effect.forkScoped)
  return {
    setCurrent: (current: boolean) => {
      isCurrent = current
    },
    stop: Effect.suspend(() => {
      stopping = true
      return Fiber.await(router)
    })
  }
})

describe.concurrent("a router whose endpoints are not current", () => {
  scenario("plans nothing that it has in hand, and asks for nothing more", () =>
    Effect.gen(function* () {
      const facts = yield* history
      yield* endpoint({ id: "hook" })
      const { setCurrent, stop } = yield* routerBy()
      let type = 0
      // What comes of a request that was open already is in hand; there may have been none.
      const takeOne: Effect.Effect<void, unknown, Broker> = Effect.gen(function* () {
        setCurrent(true)
        yield* publish(`t${type++}`)
        yield* facts.planned(type)
        yield* eventually(deliveryCount, ({ prefetch }) => prefetch === 0)
        setCurrent(false)
        yield* publish(`t${type++}`)
        const { prefetch } = yield* eventually(
          deliveryCount,
          ({ prefetch, requests }) => prefetch > 0 || requests === 0
        )
        if (prefetch > 0) return
        setCurrent(true)
        yield* facts.planned(type)
        yield* takeOne
      })
      yield* takeOne
      const before = facts.plans().length
      assert.strictEqual(before, type - 1)
      yield* eventually(deliveryCount, ({ requests }) => requests === 0)
      yield* publish("more")
      const { prefetch, waiting } = yield* deliveryCount
      assert.deepStrictEqual([prefetch, waiting], [1, 1])
      assert.lengthOf(facts.plans(), before)

      const asked = performance.now()
      yield* stop
      assert.isBelow(performance.now() - asked, 3_000)
      assert.lengthOf(facts.plans(), before)
      yield* startedWorker({ id: "w2", roles: ["router"] })
      yield* facts.planned(before + 2)
    })
  )
})
